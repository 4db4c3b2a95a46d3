// Lets the sampler thread run at the agent's initial priority while its rings may overflow: while events are opened, after
// a loss, and for some seconds after each. On a busy machine a polite thread reads the rings too late. Pure.
#pragma once

#include <cstdint>

namespace flamewire::agent {

inline constexpr std::uint64_t priority_boost_ns = 5'000'000'000;

class PriorityBoost {
public:
    // `set` changes the priority of the calling thread.
    explicit PriorityBoost(void (*set)(bool boost)) : set_(set) {}

    void begin() {
        if (!on_) set_(on_ = true);
        end_ns_ = 0;
    }
    // Call it regularly.
    void update(std::uint64_t now_ns) {
        if (!on_) return;
        if (end_ns_ == 0) end_ns_ = now_ns + priority_boost_ns;
        if (now_ns >= end_ns_) set_(on_ = false);
    }

private:
    void (*set_)(bool boost);
    bool on_ = false;
    std::uint64_t end_ns_ = 0;  // 0: the next update() starts the time
};

}  // namespace flamewire::agent
