// The times between switches, on a thread's life written down by hand.
#include "agent/pipeline/absences.h"

#include <catch2/catch.hpp>

#include <algorithm>

using namespace flamewire::agent;
namespace wire = flamewire::wire;

namespace {

struct Told {
    std::uint32_t stack;
    Away kind;
    std::uint64_t begin, end;
    bool operator==(const Told&) const = default;
};

// But for wakers that nobody saw.
std::vector<Told> told(Absences& absences) {
    std::vector<Told> all;
    for (const Absences::Piece& piece : absences.take_pieces())
        if (piece.kind != Away::woken_by || piece.stack != 0)
            all.push_back({piece.stack, piece.kind, piece.end_ns - piece.length_ns, piece.end_ns});
    return all;
}

// Begin, end, and the four states between.
using Lived = std::vector<std::vector<std::uint64_t>>;
Lived lived(const std::vector<wire::ThreadTimes>& all) {
    Lived stretches;
    for (const wire::ThreadTimes& one : all)
        stretches.push_back({one.end_ns - one.length_ns(), one.end_ns, one.state_ns[0], one.state_ns[1],
                             one.state_ns[2], one.state_ns[3]});
    return stretches;
}

constexpr std::uint32_t tid = 7;

void out(Absences& absences, std::uint64_t time, std::uint32_t stack, bool preempted = false,
         Away kind = Away::off_cpu) {
    absences.leaves(tid, 1, stack, 0, kind, time - 1);
    absences.switched({tid, time, true, preempted});
}
void in(Absences& absences, std::uint64_t time) { absences.switched({tid, time, false, false}); }

}  // namespace

TEST_CASE("an absence is the time between the records of its switches, by kind") {
    Absences absences;
    out(absences, 100, 5);
    in(absences, 300);
    out(absences, 310, 6, true, Away::io_wait);  // it was to wait for a device, but could run on
    in(absences, 320);
    out(absences, 400, 8, false, Away::io_wait);
    in(absences, 450);
    CHECK(told(absences) == std::vector<Told>{{5, Away::off_cpu, 100, 300},
                                              {6, Away::run_queue, 310, 320},
                                              {8, Away::io_wait, 400, 450}});
    in(absences, 500);  // it was here
    absences.cut(600);
    CHECK(told(absences).empty());
    CHECK(absences.stacks().empty());
}

TEST_CASE("who is woken waits for a CPU from then on") {
    Absences absences;
    in(absences, 50);
    out(absences, 100, 5);
    CHECK(absences.asleep(tid, 150) == 1);
    CHECK(absences.asleep(tid + 1, 150) == 0);
    absences.cut(200);
    absences.woken(tid, 9, 3, 260);
    CHECK(absences.asleep(tid, 260) == 0);  // twice is once
    in(absences, 300);
    out(absences, 310, 6, true);
    CHECK(absences.asleep(tid, 315) == 0);  // it could run all the time
    in(absences, 320);
    // The sleep is reported in pieces, its end by the waker as a whole.
    CHECK(told(absences) == std::vector<Told>{{5, Away::off_cpu, 100, 200},
                                              {9, Away::woken_by, 100, 260},
                                              {5, Away::off_cpu, 200, 260},
                                              {5, Away::run_queue, 260, 300},
                                              {6, Away::run_queue, 310, 320}});
    absences.cut_times(400);
    std::uint64_t blocked = 0, runnable = 0, waits = 0;
    for (const wire::ThreadTimes& times : absences.take_times()) {
        blocked += times.state_ns[static_cast<std::size_t>(wire::ThreadState::blocked)];
        runnable += times.state_ns[static_cast<std::size_t>(wire::ThreadState::runnable)];
        waits += times.queued.count();
    }
    CHECK(blocked == 160);
    CHECK(runnable == 50);
    CHECK(waits == 2);

    // Before it is known to sleep, nobody wakes it.
    absences.take_pieces();
    out(absences, 402, 7);
    CHECK(absences.asleep(tid, 401) == 0);
    CHECK(absences.asleep(tid, 403) == 1);
    in(absences, 405);
    absences.take_pieces();

    // A sleep that ends without a word has its length too.
    out(absences, 410, 7);
    in(absences, 450);
    const std::vector<Absences::Piece> pieces = absences.take_pieces();
    REQUIRE(pieces.size() == 2);
    CHECK((pieces[0].kind == Away::woken_by && pieces[0].stack == 0 && pieces[0].length_ns == 40));
}

TEST_CASE("the end of a sleep has all of its length, also when nobody saw it begin") {
    Absences absences;
    const std::uint64_t second = 1'000'000'000;
    absences.found(tid, 1, Away::off_cpu, second);
    for (std::uint64_t cut = 2; cut <= 30; ++cut) absences.cut(cut * second);
    absences.take_pieces();
    absences.woken(tid, 9, 0, 31 * second);
    std::vector<Absences::Piece> pieces = absences.take_pieces();
    CHECK((pieces.front().kind == Away::woken_by && pieces.front().length_ns == 30 * second));
    in(absences, 31 * second + 1);
    // A pause is in no sleep.
    out(absences, 32 * second, 5);
    absences.gap(33 * second, 40 * second, Absences::Gap::pause);
    absences.take_pieces();
    absences.woken(tid, 9, 0, 42 * second);
    pieces = absences.take_pieces();
    CHECK((pieces.front().kind == Away::woken_by && pieces.front().length_ns == 2 * second));
}

TEST_CASE("who is woken before its switch is recorded only waits for its next turn") {
    Absences absences;
    const std::uint64_t us = 1'000;
    out(absences, 10 * us, 4);
    in(absences, 100 * us);
    absences.take_pieces();
    absences.woken_early(tid, 490 * us);
    out(absences, 500 * us, 5);
    in(absences, 600 * us);
    CHECK(told(absences) == std::vector<Told>{{5, Away::run_queue, 500 * us, 600 * us}});
    // Long before: it stayed, and slept later.
    absences.woken_early(tid, 610 * us);
    out(absences, 700 * us, 6);
    in(absences, 800 * us);
    CHECK(told(absences) == std::vector<Told>{{6, Away::off_cpu, 700 * us, 800 * us}});
    // It went to sleep after all, as who woke it shows.
    absences.woken_early(tid, 890 * us);
    out(absences, 900 * us, 7);
    CHECK(absences.asleep(tid, 990 * us) == 1);
    absences.woken(tid, 9, 0, 990 * us);
    in(absences, 1'000 * us);
    CHECK(told(absences) == std::vector<Told>{{9, Away::woken_by, 900 * us, 990 * us},
                                              {7, Away::off_cpu, 900 * us, 990 * us},
                                              {7, Away::run_queue, 990 * us, 1'000 * us}});
}

TEST_CASE("a long absence is told in pieces that add up") {
    Absences absences;
    out(absences, 100, 5);
    absences.cut(1'000);
    absences.cut(2'000);
    CHECK(absences.stacks().size() == 1);
    in(absences, 2'500);
    absences.cut(3'000);
    CHECK(told(absences) == std::vector<Told>{{5, Away::off_cpu, 100, 1'000},
                                              {5, Away::off_cpu, 1'000, 2'000},
                                              {5, Away::off_cpu, 2'000, 2'500}});
    // The record of its return may come after the cut that it precedes: never less than nothing.
    out(absences, 2'600, 6);
    absences.cut(4'000);
    in(absences, 3'999);
    CHECK(told(absences) == std::vector<Told>{{6, Away::off_cpu, 2'600, 4'000}});
}

TEST_CASE("threads that sleep at the beginning, new ones, and those that end") {
    Absences absences;
    absences.found(tid, 1, Away::off_cpu, 1'000);
    absences.cut(2'000);
    in(absences, 2'400);
    CHECK(told(absences) == std::vector<Told>{{0, Away::off_cpu, 1'000, 2'000}, {0, Away::off_cpu, 2'000, 2'400}});
    // Found asleep, but its records say that it was here when the recording began.
    absences.found(8, 1, Away::off_cpu, 1'000);
    absences.leaves(8, 1, 5, 0, Away::off_cpu, 1'100);
    absences.switched({8, 1'101, true, false});
    absences.switched({8, 1'201, false, false});
    CHECK(told(absences) == std::vector<Told>{{5, Away::off_cpu, 1'101, 1'201}});
    // One that can run may be running: reported only when it comes back.
    absences.found(9, 1, Away::run_queue, 1'000);
    absences.cut(2'000);
    CHECK(told(absences).empty());
    absences.switched({9, 2'500, false, false});
    CHECK(told(absences) == std::vector<Told>{{0, Away::run_queue, 1'000, 2'500}});
    absences.born(10, 1, 3'000);
    absences.switched({10, 3'050, false, false});
    CHECK(told(absences) == std::vector<Told>{{0, Away::run_queue, 3'000, 3'050}});
    // What was found does not come before what records have said.
    out(absences, 5'000, 6);
    absences.found(tid, 1, Away::off_cpu, 1'000);
    absences.exited(tid, 8'000);
    absences.cut(9'000);
    in(absences, 9'100);
    CHECK(told(absences).empty());
}

TEST_CASE("a gap is not counted, and neither loses nor doubles what is around it") {
    Absences absences;
    out(absences, 100, 5);
    absences.gap(200, 1'200, Absences::Gap::pause);
    in(absences, 1'300);  // away all the time, as far as anybody can tell
    CHECK(told(absences) == std::vector<Told>{{5, Away::off_cpu, 100, 200}, {5, Away::off_cpu, 1'200, 1'300}});
    out(absences, 1'400, 6);
    absences.gap(1'500, 1'600, Absences::Gap::pause);
    out(absences, 1'700, 8);  // it was back in between, unseen
    in(absences, 1'800);
    CHECK(told(absences) == std::vector<Told>{{6, Away::off_cpu, 1'400, 1'500}, {8, Away::off_cpu, 1'700, 1'800}});
    absences.gap(1'900, 2'000, Absences::Gap::pause);  // here before, left unseen
    absences.cut(2'050);
    in(absences, 2'100);
    CHECK(told(absences) == std::vector<Told>{{0, Away::off_cpu, 2'000, 2'100}});
}

TEST_CASE("who is away while the events are exchanged goes on being away") {
    Absences absences;
    out(absences, 100, 5);
    absences.gap(200, 300, Absences::Gap::exchange);
    in(absences, 350);
    CHECK(told(absences) == std::vector<Told>{{5, Away::off_cpu, 100, 200}, {5, Away::off_cpu, 200, 350}});
    out(absences, 400, 6);
    absences.gap(450, 500, Absences::Gap::exchange);
    out(absences, 600, 7);  // it was back in between, unseen
    in(absences, 700);
    CHECK(told(absences) == std::vector<Told>{{6, Away::off_cpu, 400, 450}, {7, Away::off_cpu, 600, 700}});
    absences.gap(750, 800, Absences::Gap::exchange);  // here before, and until it leaves
    out(absences, 900, 8);
    absences.cut_times(1'000);
    CHECK(lived(absences.take_times()) ==
          Lived{{99, 450, 51, 0, 300, 0}, {599, 750, 51, 0, 100, 0}, {800, 1'000, 100, 0, 100, 0}});
}

TEST_CASE("after a loss nobody has been away since before it") {
    Absences absences;
    out(absences, 100, 5);
    absences.forget();
    in(absences, 5'000);
    out(absences, 6'000, 6);
    in(absences, 6'100);
    CHECK(told(absences) == std::vector<Told>{{6, Away::off_cpu, 6'000, 6'100}});
    // A switch out whose sample was not seen: its stack is not the one before.
    absences.switched({tid, 7'000, true, false});
    in(absences, 7'100);
    CHECK(told(absences) == std::vector<Told>{{0, Away::off_cpu, 7'000, 7'100}});
}

TEST_CASE("every moment of a life is in one of four states") {
    Absences absences;
    absences.born(tid, 1, 1'000);
    in(absences, 1'050);
    out(absences, 1'150, 5, true);
    in(absences, 1'180);
    absences.cut_times(1'200);
    out(absences, 1'280, 6);
    in(absences, 1'380);
    out(absences, 1'400, 7, false, Away::io_wait);
    absences.cut_times(1'450);
    in(absences, 1'460);
    absences.exited(tid, 1'500);
    const auto times = absences.take_times();
    CHECK(lived(times) ==
          Lived{{1'000, 1'200, 120, 80, 0, 0}, {1'200, 1'450, 100, 0, 100, 50}, {1'450, 1'500, 40, 0, 0, 10}});
    wire::ThreadTimes all;
    for (const wire::ThreadTimes& one : times) all.add(one);
    CHECK(all.preempted == 1);
    CHECK(all.slept == 1);
    CHECK(all.io_waits == 1);
    // 50 of the new thread and 30; the turn that ended with the life is none that it left.
    CHECK(all.queued.count() == 2);
    CHECK(all.queued.sum_ns == 80);
    CHECK(all.slices.count() == 3);
    CHECK(all.slices.sum_ns == 100 + 100 + 20);
    CHECK(absences.take_times().empty());
}

TEST_CASE("a thread that has ended does not sleep, whatever its last switch says") {
    Absences absences;
    absences.born(tid, 1, 1'000);
    in(absences, 1'100);
    absences.exited(tid, 1'200);
    out(absences, 1'210, 5);
    absences.cut(2'000);
    CHECK(told(absences) == std::vector<Told>{{0, Away::run_queue, 1'000, 1'100}});
    CHECK(lived(absences.take_times()) == Lived{{1'000, 1'200, 100, 100, 0, 0}});
    absences.cut(2'000'000'000);
    CHECK(told(absences).empty());
    // Its number is given anew.
    absences.born(tid, 2, 2'100'000'000);
    in(absences, 2'100'000'010);
    CHECK(told(absences).size() == 1);
}

TEST_CASE("times are told of those that did something, and at a cut of all") {
    Absences absences;
    out(absences, 100, 5);
    absences.found(8, 2, Away::off_cpu, 50);
    absences.cut_times(200);
    CHECK(lived(absences.take_times()) == Lived{{99, 200, 1, 0, 100, 0}});
    absences.cut_times(300);
    CHECK(absences.take_times().empty());
    absences.cut(1'000);
    auto times = absences.take_times();
    std::ranges::sort(times, {}, &wire::ThreadTimes::thread);
    CHECK(lived(times) == Lived{{200, 1'000, 0, 0, 800, 0}, {50, 1'000, 0, 0, 950, 0}});
}

TEST_CASE("nobody knows what a thread did over a gap, or between records that do not fit") {
    Absences absences;
    out(absences, 100, 5);
    absences.gap(200, 300, Absences::Gap::pause);
    in(absences, 350);
    in(absences, 400);  // it left in between
    out(absences, 450, 6);
    out(absences, 500, 7);  // it came back in between
    absences.cut_times(600);
    CHECK(lived(absences.take_times()) ==
          Lived{{99, 200, 1, 0, 100, 0}, {300, 350, 0, 0, 50, 0}, {400, 450, 50, 0, 0, 0}, {499, 600, 1, 0, 100, 0}});
}

TEST_CASE("who is undecided is as said twice with no record between") {
    Absences absences;
    absences.found(tid, 1, Away::run_queue, 100);
    absences.found(8, 2, Away::run_queue, 100);
    absences.found(9, 3, Away::run_queue, 100);
    REQUIRE(absences.undecided().size() == 3);
    absences.decide(tid, Away::run_queue);
    absences.decide(8, Away::off_cpu);
    absences.decide(9, std::nullopt);
    absences.cut(200);
    CHECK(absences.take_times().empty());
    absences.decide(tid, Away::run_queue);
    absences.switched({8, 190, true, true});  // it was just so
    absences.decide(8, Away::off_cpu);
    absences.decide(9, std::nullopt);
    absences.cut(300);
    auto times = absences.take_times();
    std::ranges::sort(times, {}, &wire::ThreadTimes::thread);
    CHECK(lived(times) == Lived{{100, 300, 200, 0, 0, 0}, {100, 300, 90, 110, 0, 0}});
    CHECK(absences.undecided().size() == 1);
}

TEST_CASE("a program that is another goes on as another thread") {
    Absences absences;
    absences.execed(tid, 1, 100);  // of one that was launched: it begins here
    absences.execed(tid, 2, 300);
    absences.leaves(tid, 2, 5, 0, Away::off_cpu, 399);
    absences.switched({tid, 400, true, false});
    absences.cut(500);
    const auto times = absences.take_times();
    REQUIRE(times.size() == 2);
    CHECK(times[0].thread == 1);
    CHECK(lived(times) == Lived{{100, 300, 200, 0, 0, 0}, {300, 500, 100, 0, 100, 0}});
    absences.forget();
    CHECK(absences.take_times().empty());
}

TEST_CASE("a loss ends off-CPU pieces and thread times at the same point") {
    Absences absences;
    in(absences, 50);
    out(absences, 100, 5);
    absences.cut_times(150);
    absences.on_lost_records();
    CHECK(told(absences) == std::vector<Told>{{5, Away::off_cpu, 100, 150}});
    CHECK(lived(absences.take_times()).back().at(1) == 150);
    absences.found(tid, 1, Away::off_cpu, 180);
    CHECK(absences.take_unknown_ns() == 30);
}

TEST_CASE("after a loss, thread states are unknown until the next record, /proc or exit, and that time is counted") {
    Absences absences;
    in(absences, 50);
    out(absences, 100, 5);
    for (const std::uint32_t other : {8U, 9U, 10U}) absences.found(other, other, Away::off_cpu, 50);
    absences.cut(200);
    absences.take_times();
    CHECK(absences.take_unknown_ns() == 0);
    absences.on_lost_records();
    absences.on_lost_records();  // counts nothing twice
    CHECK(absences.unknown_threads().size() == 4);
    out(absences, 250, 6);                     // 49, as its sample is one earlier
    absences.found(8, 8, Away::off_cpu, 260);  // 60
    absences.exited(9, 270);                   // 70
    CHECK(absences.unknown_threads() == std::vector{10U});
    CHECK(absences.take_unknown_ns() == 49 + 60 + 70);
    absences.cut(300);
    CHECK(absences.take_unknown_ns() == 100);
    // A pause does not count.
    absences.gap(310, 350, Absences::Gap::pause);
    absences.cut(360);
    CHECK(absences.take_unknown_ns() == 10 + 10);
    absences.remove(10);
    absences.cut(500);
    CHECK(absences.take_unknown_ns() == 0);
    absences.on_lost_records();
    absences.born(8, 11, 600);  // another thread of that number
    CHECK(absences.take_unknown_ns() == 0);
    absences.forget();
    CHECK(absences.unknown_threads().empty());
}

TEST_CASE("a thread that is undecided at the end of a recording with losses is in an unknown state") {
    const bool loses = GENERATE(false, true);
    Absences absences;
    in(absences, 50);
    out(absences, 100, 5);
    absences.cut(200);
    if (loses) absences.on_lost_records();
    absences.found(tid, 0, Away::run_queue, 240);
    absences.found(8, 8, Away::run_queue, 250);
    CHECK(absences.take_unknown_ns() == (loses ? 40 : 0));
    absences.finish(300);
    CHECK(absences.take_unknown_ns() == (loses ? 60 + 50 : 0));
}

TEST_CASE("time between contradictory records is unknown if a loss is reported later") {
    const bool loses = GENERATE(false, true);
    Absences absences;
    in(absences, 50);
    out(absences, 100, 5);
    out(absences, 300, 6);  // its sample is one earlier
    in(absences, 350);
    in(absences, 400);
    absences.found(8, 8, Away::run_queue, 300);
    absences.exited(8, 330);  // undecided until then
    absences.gap(500, 700, Absences::Gap::pause);
    CHECK(absences.take_unknown_ns() == 0);
    if (loses) absences.on_lost_records();
    CHECK(absences.take_unknown_ns() == (loses ? 199 + 50 + 30 : 0));
    absences.on_lost_records();
    CHECK(absences.take_unknown_ns() == (loses ? 0 : 199 + 50 + 30));
}
