#include "profile/store/changes.h"

#include <catch2/catch.hpp>

using namespace flamewire;
using flamewire::profile::what_changed;

TEST_CASE("a change is described in words, with a bounded length") {
    wire::Recording before;
    before.target = "pid 1 (a)";
    before.frequency_hz = 99;
    before.unwind = "auto";
    before.stack_bytes = 16384;
    before.max_depth = 127;
    before.kernel = true;
    CHECK(what_changed(before, before) == "events");
    wire::Recording after = before;
    after.frequency_hz = 499;
    CHECK(what_changed(before, after) == "99 Hz became 499 Hz");
    after.unwind = "dwarf";
    after.kernel = false;
    CHECK(what_changed(before, after) == "99 Hz became 499 Hz; stacks auto became dwarf; without kernel functions");
    after = before;
    after.frequency_hz = 0;
    after.period = 1000;
    after.target = "pid 2 (b)";
    CHECK(what_changed(before, after) == "pid 1 (a) became pid 2 (b); 99 Hz became every 1000 events");
    after.target.assign(5000, 'x');
    CHECK(what_changed(before, after).size() == 1000);
}
