// Decides when faults and hits of probes are too frequent to sample each. So many samples slow down the target and fill
// the rings. Pure.
#pragma once

#include <cstdint>

namespace flamewire::agent {

class EventThrottle {
public:
    // More samples than this within this time are too many.
    static constexpr std::uint64_t max_samples = 2'000, window_ns = 100'000'000;
    // Then the period is multiplied by this. It is odd, because programs often access memory in powers of two.
    static constexpr std::uint64_t step = 17;
    // A lost sample counts as this many, because samples with stacks fill the rings sooner.
    static constexpr std::uint64_t lost_weight = 16;

    // Starts a window. Samples left in replaced events do not count for the new ones.
    void begin(std::uint64_t now_ns) {
        samples_ = 0;
        begin_ns_ = now_ns;
    }
    void add_sample() { ++samples_; }
    void add_lost(std::uint64_t samples) { samples_ += lost_weight * samples; }
    // The window is over, or it has enough samples for a decision.
    [[nodiscard]] bool complete(std::uint64_t now_ns) const {
        return samples_ >= max_samples || now_ns - begin_ns_ >= window_ns;
    }
    [[nodiscard]] bool too_many(std::uint64_t now_ns) const {
        return samples_ * window_ns > max_samples * (now_ns - begin_ns_);
    }

private:
    std::uint64_t samples_ = 0, begin_ns_ = 0;
};

}  // namespace flamewire::agent
