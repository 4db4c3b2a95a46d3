// The times between switches, on a thread's life written down by hand.
#include "agent/pipeline/absences.h"

#include <catch2/catch.hpp>

using namespace flamewire::agent;

namespace {

struct Told {
    std::uint32_t stack;
    Away kind;
    std::uint64_t begin, end;
    bool operator==(const Told&) const = default;
};

std::vector<Told> told(Absences& absences) {
    std::vector<Told> all;
    for (const Absences::Piece& piece : absences.take_pieces())
        all.push_back({piece.stack, piece.kind, piece.end_ns - piece.length_ns, piece.end_ns});
    return all;
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
    // One that can run may be running: told only when it comes back.
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
    absences.exited(tid);
    absences.cut(9'000);
    in(absences, 9'100);
    CHECK(told(absences).empty());
}

TEST_CASE("a gap is not counted, and neither loses nor doubles what is around it") {
    Absences absences;
    out(absences, 100, 5);
    absences.gap(200, 1'200);
    in(absences, 1'300);  // away all the time, as far as anybody can tell
    CHECK(told(absences) == std::vector<Told>{{5, Away::off_cpu, 100, 200}, {5, Away::off_cpu, 1'200, 1'300}});
    out(absences, 1'400, 6);
    absences.gap(1'500, 1'600);
    out(absences, 1'700, 8);  // it was back in between, unseen
    in(absences, 1'800);
    CHECK(told(absences) == std::vector<Told>{{6, Away::off_cpu, 1'400, 1'500}, {8, Away::off_cpu, 1'700, 1'800}});
    absences.gap(1'900, 2'000);  // here before, left unseen
    absences.cut(2'050);
    in(absences, 2'100);
    CHECK(told(absences) == std::vector<Told>{{0, Away::off_cpu, 2'000, 2'100}});
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
