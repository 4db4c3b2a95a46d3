// The time between switches, for threads with records written by hand.
#include "agent/pipeline/off_cpu_tracker.h"

#include <catch2/catch.hpp>

#include <algorithm>

using namespace flamewire::agent;
namespace wire = flamewire::wire;

namespace {

struct Taken {
    std::uint32_t stack;
    OffCpuReason kind;
    std::uint64_t begin, end;
    bool operator==(const Taken&) const = default;
};

// All slices, except those of wakers that were not recorded.
std::vector<Taken> taken(OffCpuTracker& tracker) {
    std::vector<Taken> all;
    for (const OffCpuTracker::Slice& slice : tracker.take_slices())
        if (slice.reason != OffCpuReason::woken_by || slice.stack != 0)
            all.push_back({slice.stack, slice.reason, slice.end_ns - slice.length_ns, slice.end_ns});
    return all;
}

// Begin, end, and the time in each of the four states.
using Lived = std::vector<std::vector<std::uint64_t>>;
Lived lived(const std::vector<wire::ThreadTimes>& all) {
    Lived stretches;
    for (const wire::ThreadTimes& one : all)
        stretches.push_back({one.end_ns - one.length_ns(), one.end_ns, one.state_ns[0], one.state_ns[1],
                             one.state_ns[2], one.state_ns[3]});
    return stretches;
}

constexpr std::uint32_t tid = 7;

void out(OffCpuTracker& tracker, std::uint64_t time, std::uint32_t stack, bool preempted = false,
         OffCpuReason kind = OffCpuReason::off_cpu) {
    tracker.leaves(tid, 1, stack, 0, kind, time - 1);
    tracker.switched({tid, time, true, preempted});
}
void in(OffCpuTracker& tracker, std::uint64_t time) { tracker.switched({tid, time, false, false}); }

}  // namespace

TEST_CASE("an off-CPU slice is the time between the records of two switches, with its reason") {
    OffCpuTracker tracker;
    out(tracker, 100, 5);
    in(tracker, 300);
    out(tracker, 310, 6, true, OffCpuReason::io_wait);  // it was about to wait for a device, but was still runnable
    in(tracker, 320);
    out(tracker, 400, 8, false, OffCpuReason::io_wait);
    in(tracker, 450);
    CHECK(taken(tracker) == std::vector<Taken>{{5, OffCpuReason::off_cpu, 100, 300},
                                               {6, OffCpuReason::run_queue, 310, 320},
                                               {8, OffCpuReason::io_wait, 400, 450}});
    in(tracker, 500);  // it was already on a CPU
    tracker.cut(600);
    CHECK(taken(tracker).empty());
    CHECK(tracker.stacks().empty());
}

TEST_CASE("a woken thread waits for a CPU from then on") {
    OffCpuTracker tracker;
    in(tracker, 50);
    out(tracker, 100, 5);
    CHECK(tracker.asleep(tid, 150) == 1);
    CHECK(tracker.asleep(tid + 1, 150) == 0);
    tracker.cut(200);
    tracker.woken(tid, 9, 3, 260);
    CHECK(tracker.asleep(tid, 260) == 0);  // a second wake-up has no effect
    in(tracker, 300);
    out(tracker, 310, 6, true);
    CHECK(tracker.asleep(tid, 315) == 0);  // it was runnable all the time
    in(tracker, 320);
    // The sleep is reported in slices. The waker's slice covers the whole sleep.
    CHECK(taken(tracker) == std::vector<Taken>{{5, OffCpuReason::off_cpu, 100, 200},
                                               {9, OffCpuReason::woken_by, 100, 260},
                                               {5, OffCpuReason::off_cpu, 200, 260},
                                               {5, OffCpuReason::run_queue, 260, 300},
                                               {6, OffCpuReason::run_queue, 310, 320}});
    tracker.cut_times(400);
    std::uint64_t blocked = 0, runnable = 0, waits = 0;
    for (const wire::ThreadTimes& times : tracker.take_times()) {
        blocked += times.state_ns[static_cast<std::size_t>(wire::ThreadState::blocked)];
        runnable += times.state_ns[static_cast<std::size_t>(wire::ThreadState::runnable)];
        waits += times.queued.count();
    }
    CHECK(blocked == 160);
    CHECK(runnable == 50);
    CHECK(waits == 2);

    // Before the thread is known to sleep, a wake-up has no effect.
    tracker.take_slices();
    out(tracker, 402, 7);
    CHECK(tracker.asleep(tid, 401) == 0);
    CHECK(tracker.asleep(tid, 403) == 1);
    in(tracker, 405);
    tracker.take_slices();

    // A sleep that ends without a wake-up record has its length, too.
    out(tracker, 410, 7);
    in(tracker, 450);
    const std::vector<OffCpuTracker::Slice> slices = tracker.take_slices();
    REQUIRE(slices.size() == 2);
    CHECK((slices[0].reason == OffCpuReason::woken_by && slices[0].stack == 0 && slices[0].length_ns == 40));
}

TEST_CASE("the waker's slice covers the whole sleep, also if its start was not recorded") {
    OffCpuTracker tracker;
    const std::uint64_t second = 1'000'000'000;
    tracker.found(tid, 1, OffCpuReason::off_cpu, second);
    for (std::uint64_t cut = 2; cut <= 30; ++cut) tracker.cut(cut * second);
    tracker.take_slices();
    tracker.woken(tid, 9, 0, 31 * second);
    std::vector<OffCpuTracker::Slice> slices = tracker.take_slices();
    CHECK((slices.front().reason == OffCpuReason::woken_by && slices.front().length_ns == 30 * second));
    in(tracker, 31 * second + 1);
    // A pause does not count as sleep.
    out(tracker, 32 * second, 5);
    tracker.gap(33 * second, 40 * second, OffCpuTracker::Gap::pause);
    tracker.take_slices();
    tracker.woken(tid, 9, 0, 42 * second);
    slices = tracker.take_slices();
    CHECK((slices.front().reason == OffCpuReason::woken_by && slices.front().length_ns == 2 * second));
}

TEST_CASE("a thread that is woken before its switch is recorded only waits for its next turn") {
    OffCpuTracker tracker;
    const std::uint64_t us = 1'000;
    out(tracker, 10 * us, 4);
    in(tracker, 100 * us);
    tracker.take_slices();
    tracker.woken_early(tid, 490 * us);
    out(tracker, 500 * us, 5);
    in(tracker, 600 * us);
    CHECK(taken(tracker) == std::vector<Taken>{{5, OffCpuReason::run_queue, 500 * us, 600 * us}});
    // Woken much earlier: it kept running and slept later.
    tracker.woken_early(tid, 610 * us);
    out(tracker, 700 * us, 6);
    in(tracker, 800 * us);
    CHECK(taken(tracker) == std::vector<Taken>{{6, OffCpuReason::off_cpu, 700 * us, 800 * us}});
    // It did go to sleep, as the later wake-up shows.
    tracker.woken_early(tid, 890 * us);
    out(tracker, 900 * us, 7);
    CHECK(tracker.asleep(tid, 990 * us) == 1);
    tracker.woken(tid, 9, 0, 990 * us);
    in(tracker, 1'000 * us);
    CHECK(taken(tracker) == std::vector<Taken>{{9, OffCpuReason::woken_by, 900 * us, 990 * us},
                                               {7, OffCpuReason::off_cpu, 900 * us, 990 * us},
                                               {7, OffCpuReason::run_queue, 990 * us, 1'000 * us}});
}

TEST_CASE("a long off-CPU time is reported in slices that add up") {
    OffCpuTracker tracker;
    out(tracker, 100, 5);
    tracker.cut(1'000);
    tracker.cut(2'000);
    CHECK(tracker.stacks().size() == 1);
    in(tracker, 2'500);
    tracker.cut(3'000);
    CHECK(taken(tracker) == std::vector<Taken>{{5, OffCpuReason::off_cpu, 100, 1'000},
                                               {5, OffCpuReason::off_cpu, 1'000, 2'000},
                                               {5, OffCpuReason::off_cpu, 2'000, 2'500}});
    // The record of the switch in may arrive after the cut but have an earlier time. The slice must not be negative.
    out(tracker, 2'600, 6);
    tracker.cut(4'000);
    in(tracker, 3'999);
    CHECK(taken(tracker) == std::vector<Taken>{{6, OffCpuReason::off_cpu, 2'600, 4'000}});
}

TEST_CASE("threads that sleep at the start, new threads, and threads that exit") {
    OffCpuTracker tracker;
    tracker.found(tid, 1, OffCpuReason::off_cpu, 1'000);
    tracker.cut(2'000);
    in(tracker, 2'400);
    CHECK(taken(tracker) ==
          std::vector<Taken>{{0, OffCpuReason::off_cpu, 1'000, 2'000}, {0, OffCpuReason::off_cpu, 2'000, 2'400}});
    // Found asleep, but its records show that it was on a CPU when the recording began.
    tracker.found(8, 1, OffCpuReason::off_cpu, 1'000);
    tracker.leaves(8, 1, 5, 0, OffCpuReason::off_cpu, 1'100);
    tracker.switched({8, 1'101, true, false});
    tracker.switched({8, 1'201, false, false});
    CHECK(taken(tracker) == std::vector<Taken>{{5, OffCpuReason::off_cpu, 1'101, 1'201}});
    // A runnable thread may be running, so it is reported only when it switches in.
    tracker.found(9, 1, OffCpuReason::run_queue, 1'000);
    tracker.cut(2'000);
    CHECK(taken(tracker).empty());
    tracker.switched({9, 2'500, false, false});
    CHECK(taken(tracker) == std::vector<Taken>{{0, OffCpuReason::run_queue, 1'000, 2'500}});
    tracker.born(10, 1, 3'000);
    tracker.switched({10, 3'050, false, false});
    CHECK(taken(tracker) == std::vector<Taken>{{0, OffCpuReason::run_queue, 3'000, 3'050}});
    // A scan of /proc does not precede earlier records.
    out(tracker, 5'000, 6);
    tracker.found(tid, 1, OffCpuReason::off_cpu, 1'000);
    tracker.exited(tid, 8'000);
    tracker.cut(9'000);
    in(tracker, 9'100);
    CHECK(taken(tracker).empty());
}

TEST_CASE("a gap is not counted, and time next to it is neither lost nor counted twice") {
    OffCpuTracker tracker;
    out(tracker, 100, 5);
    tracker.gap(200, 1'200, OffCpuTracker::Gap::pause);
    in(tracker, 1'300);  // off-CPU all the time, as far as the records show
    CHECK(taken(tracker) ==
          std::vector<Taken>{{5, OffCpuReason::off_cpu, 100, 200}, {5, OffCpuReason::off_cpu, 1'200, 1'300}});
    out(tracker, 1'400, 6);
    tracker.gap(1'500, 1'600, OffCpuTracker::Gap::pause);
    out(tracker, 1'700, 8);  // it was back in between, unrecorded
    in(tracker, 1'800);
    CHECK(taken(tracker) ==
          std::vector<Taken>{{6, OffCpuReason::off_cpu, 1'400, 1'500}, {8, OffCpuReason::off_cpu, 1'700, 1'800}});
    tracker.gap(1'900, 2'000, OffCpuTracker::Gap::pause);  // on a CPU before, left unrecorded
    tracker.cut(2'050);
    in(tracker, 2'100);
    CHECK(taken(tracker) == std::vector<Taken>{{0, OffCpuReason::off_cpu, 2'000, 2'100}});
}

TEST_CASE("off-CPU time continues while the events are exchanged") {
    OffCpuTracker tracker;
    out(tracker, 100, 5);
    tracker.gap(200, 300, OffCpuTracker::Gap::exchange);
    in(tracker, 350);
    CHECK(taken(tracker) ==
          std::vector<Taken>{{5, OffCpuReason::off_cpu, 100, 200}, {5, OffCpuReason::off_cpu, 200, 350}});
    out(tracker, 400, 6);
    tracker.gap(450, 500, OffCpuTracker::Gap::exchange);
    out(tracker, 600, 7);  // it was back in between, unrecorded
    in(tracker, 700);
    CHECK(taken(tracker) ==
          std::vector<Taken>{{6, OffCpuReason::off_cpu, 400, 450}, {7, OffCpuReason::off_cpu, 600, 700}});
    tracker.gap(750, 800, OffCpuTracker::Gap::exchange);  // on a CPU before, and until it leaves
    out(tracker, 900, 8);
    tracker.cut_times(1'000);
    CHECK(lived(tracker.take_times()) ==
          Lived{{99, 450, 51, 0, 300, 0}, {599, 750, 51, 0, 100, 0}, {800, 1'000, 100, 0, 100, 0}});
}

TEST_CASE("after a loss, no off-CPU time starts before the loss") {
    OffCpuTracker tracker;
    out(tracker, 100, 5);
    tracker.forget();
    in(tracker, 5'000);
    out(tracker, 6'000, 6);
    in(tracker, 6'100);
    CHECK(taken(tracker) == std::vector<Taken>{{6, OffCpuReason::off_cpu, 6'000, 6'100}});
    // A switch out without its sample does not get the previous stack.
    tracker.switched({tid, 7'000, true, false});
    in(tracker, 7'100);
    CHECK(taken(tracker) == std::vector<Taken>{{0, OffCpuReason::off_cpu, 7'000, 7'100}});
}

TEST_CASE("every moment of a thread's life is in one of four states") {
    OffCpuTracker tracker;
    tracker.born(tid, 1, 1'000);
    in(tracker, 1'050);
    out(tracker, 1'150, 5, true);
    in(tracker, 1'180);
    tracker.cut_times(1'200);
    out(tracker, 1'280, 6);
    in(tracker, 1'380);
    out(tracker, 1'400, 7, false, OffCpuReason::io_wait);
    tracker.cut_times(1'450);
    in(tracker, 1'460);
    tracker.exited(tid, 1'500);
    const auto times = tracker.take_times();
    CHECK(lived(times) ==
          Lived{{1'000, 1'200, 120, 80, 0, 0}, {1'200, 1'450, 100, 0, 100, 50}, {1'450, 1'500, 40, 0, 0, 10}});
    wire::ThreadTimes all;
    for (const wire::ThreadTimes& one : times) all.add(one);
    CHECK(all.preempted == 1);
    CHECK(all.slept == 1);
    CHECK(all.io_waits == 1);
    // 50 of the new thread and 30. The last run ended with the exit, so no wait follows it.
    CHECK(all.queued.count() == 2);
    CHECK(all.queued.sum_ns == 80);
    CHECK(all.slices.count() == 3);
    CHECK(all.slices.sum_ns == 100 + 100 + 20);
    CHECK(tracker.take_times().empty());
}

TEST_CASE("a thread that has exited does not sleep, whatever its last switch") {
    OffCpuTracker tracker;
    tracker.born(tid, 1, 1'000);
    in(tracker, 1'100);
    tracker.exited(tid, 1'200);
    out(tracker, 1'210, 5);
    tracker.cut(2'000);
    CHECK(taken(tracker) == std::vector<Taken>{{0, OffCpuReason::run_queue, 1'000, 1'100}});
    CHECK(lived(tracker.take_times()) == Lived{{1'000, 1'200, 100, 100, 0, 0}});
    tracker.cut(2'000'000'000);
    CHECK(taken(tracker).empty());
    // The tid is reused.
    tracker.born(tid, 2, 2'100'000'000);
    in(tracker, 2'100'000'010);
    CHECK(taken(tracker).size() == 1);
}

TEST_CASE("times are reported for active threads, and at a cut for all") {
    OffCpuTracker tracker;
    out(tracker, 100, 5);
    tracker.found(8, 2, OffCpuReason::off_cpu, 50);
    tracker.cut_times(200);
    CHECK(lived(tracker.take_times()) == Lived{{99, 200, 1, 0, 100, 0}});
    tracker.cut_times(300);
    CHECK(tracker.take_times().empty());
    tracker.cut(1'000);
    auto times = tracker.take_times();
    std::ranges::sort(times, {}, &wire::ThreadTimes::thread);
    CHECK(lived(times) == Lived{{200, 1'000, 0, 0, 800, 0}, {50, 1'000, 0, 0, 950, 0}});
}

TEST_CASE("time across a gap, or between contradictory records, is unknown") {
    OffCpuTracker tracker;
    out(tracker, 100, 5);
    tracker.gap(200, 300, OffCpuTracker::Gap::pause);
    in(tracker, 350);
    in(tracker, 400);  // it must have left in between
    out(tracker, 450, 6);
    out(tracker, 500, 7);  // it must have come back in between
    tracker.cut_times(600);
    CHECK(lived(tracker.take_times()) ==
          Lived{{99, 200, 1, 0, 100, 0}, {300, 350, 0, 0, 50, 0}, {400, 450, 50, 0, 0, 0}, {499, 600, 1, 0, 100, 0}});
}

TEST_CASE("an undecided state holds if /proc reports it twice with no record in between") {
    OffCpuTracker tracker;
    tracker.found(tid, 1, OffCpuReason::run_queue, 100);
    tracker.found(8, 2, OffCpuReason::run_queue, 100);
    tracker.found(9, 3, OffCpuReason::run_queue, 100);
    REQUIRE(tracker.undecided().size() == 3);
    tracker.decide(tid, OffCpuReason::run_queue);
    tracker.decide(8, OffCpuReason::off_cpu);
    tracker.decide(9, std::nullopt);
    tracker.cut(200);
    CHECK(tracker.take_times().empty());
    tracker.decide(tid, OffCpuReason::run_queue);
    tracker.switched({8, 190, true, true});  // it was running until here
    tracker.decide(8, OffCpuReason::off_cpu);
    tracker.decide(9, std::nullopt);
    tracker.cut(300);
    auto times = tracker.take_times();
    std::ranges::sort(times, {}, &wire::ThreadTimes::thread);
    CHECK(lived(times) == Lived{{100, 300, 200, 0, 0, 0}, {100, 300, 90, 110, 0, 0}});
    CHECK(tracker.undecided().size() == 1);
}

TEST_CASE("after an exec, the times continue as another thread") {
    OffCpuTracker tracker;
    tracker.execed(tid, 1, 100);  // of a launched program: its time begins here
    tracker.execed(tid, 2, 300);
    tracker.leaves(tid, 2, 5, 0, OffCpuReason::off_cpu, 399);
    tracker.switched({tid, 400, true, false});
    tracker.cut(500);
    const auto times = tracker.take_times();
    REQUIRE(times.size() == 2);
    CHECK(times[0].thread == 1);
    CHECK(lived(times) == Lived{{100, 300, 200, 0, 0, 0}, {300, 500, 100, 0, 100, 0}});
    tracker.forget();
    CHECK(tracker.take_times().empty());
}

TEST_CASE("a loss ends off-CPU slices and thread times at the same point") {
    OffCpuTracker tracker;
    in(tracker, 50);
    out(tracker, 100, 5);
    tracker.cut_times(150);
    tracker.on_lost_records();
    CHECK(taken(tracker) == std::vector<Taken>{{5, OffCpuReason::off_cpu, 100, 150}});
    CHECK(lived(tracker.take_times()).back().at(1) == 150);
    tracker.found(tid, 1, OffCpuReason::off_cpu, 180);
    CHECK(tracker.take_unknown_ns() == 30);
}

TEST_CASE("after a loss, thread states are unknown until the next record, /proc or exit, and that time is counted") {
    OffCpuTracker tracker;
    in(tracker, 50);
    out(tracker, 100, 5);
    for (const std::uint32_t other : {8U, 9U, 10U}) tracker.found(other, other, OffCpuReason::off_cpu, 50);
    tracker.cut(200);
    tracker.take_times();
    CHECK(tracker.take_unknown_ns() == 0);
    tracker.on_lost_records();
    tracker.on_lost_records();  // a second call counts nothing twice
    CHECK(tracker.unknown_threads().size() == 4);
    out(tracker, 250, 6);                             // 49, because its sample is 1 ns earlier
    tracker.found(8, 8, OffCpuReason::off_cpu, 260);  // 60
    tracker.exited(9, 270);                           // 70
    CHECK(tracker.unknown_threads() == std::vector{10U});
    CHECK(tracker.take_unknown_ns() == 49 + 60 + 70);
    tracker.cut(300);
    CHECK(tracker.take_unknown_ns() == 100);
    // A pause does not count.
    tracker.gap(310, 350, OffCpuTracker::Gap::pause);
    tracker.cut(360);
    CHECK(tracker.take_unknown_ns() == 10 + 10);
    tracker.remove(10);
    tracker.cut(500);
    CHECK(tracker.take_unknown_ns() == 0);
    tracker.on_lost_records();
    tracker.born(8, 11, 600);  // another thread with the same tid
    CHECK(tracker.take_unknown_ns() == 0);
    tracker.forget();
    CHECK(tracker.unknown_threads().empty());
}

TEST_CASE("a thread that is undecided at the end of a recording with losses is in an unknown state") {
    const bool loses = GENERATE(false, true);
    OffCpuTracker tracker;
    in(tracker, 50);
    out(tracker, 100, 5);
    tracker.cut(200);
    if (loses) tracker.on_lost_records();
    tracker.found(tid, 0, OffCpuReason::run_queue, 240);
    tracker.found(8, 8, OffCpuReason::run_queue, 250);
    CHECK(tracker.take_unknown_ns() == (loses ? 40 : 0));
    tracker.finish(300);
    CHECK(tracker.take_unknown_ns() == (loses ? 60 + 50 : 0));
}

TEST_CASE("time between contradictory records is unknown if a loss is reported later") {
    const bool loses = GENERATE(false, true);
    OffCpuTracker tracker;
    in(tracker, 50);
    out(tracker, 100, 5);
    out(tracker, 300, 6);  // its sample is 1 ns earlier
    in(tracker, 350);
    in(tracker, 400);
    tracker.found(8, 8, OffCpuReason::run_queue, 300);
    tracker.exited(8, 330);  // undecided until then
    tracker.gap(500, 700, OffCpuTracker::Gap::pause);
    CHECK(tracker.take_unknown_ns() == 0);
    if (loses) tracker.on_lost_records();
    CHECK(tracker.take_unknown_ns() == (loses ? 199 + 50 + 30 : 0));
    tracker.on_lost_records();
    CHECK(tracker.take_unknown_ns() == (loses ? 0 : 199 + 50 + 30));
}
