// The switch of a set of events: whether they count, and until when that is applied again.
#pragma once

#include <cstdint>
#include <utility>

#include "base/clock.h"

namespace flamewire::agent {

// A clone() that began before its thread was opened, or switched, has ended after this time.
inline constexpr std::uint64_t clone_ns = 1'000'000'000;

// A child whose clone() is in progress copies the state that its parent's event had when clone() began, and the ioctl
// does not reach it. So the state is applied again for as long as a clone() may take.
struct EventSwitch {
    EventSwitch(bool start_disabled, bool enable_on_exec)
        : on(!start_disabled && !enable_on_exec), exec_awaited(enable_on_exec) {}

    void set(bool to) {
        on = to;
        exec_awaited = false;
        repeat();
    }
    void on_exec() {
        if (std::exchange(exec_awaited, false)) on = true;
    }
    void repeat() { repeat_until_ns = monotonic_ns() + clone_ns; }
    void repeated(std::uint64_t now_ns) {
        if (now_ns > repeat_until_ns) repeat_until_ns = 0;
    }

    bool on;
    bool exec_awaited;                  // the target's exec will turn the events on
    std::uint64_t repeat_until_ns = 0;  // 0: applied often enough
};

}  // namespace flamewire::agent
