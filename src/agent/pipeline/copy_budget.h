// Chooses how much of each user stack the kernel copies with a sample, from the measured copy rate and the lost samples.
// The rules are in docs/unwinding/stack-copies.md. Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "wire/batch.h"

namespace flamewire::agent {

enum class CopySize : std::uint8_t { maximum, configured, reduced, none };

struct CopyConfig {
    CopySize size = CopySize::configured;
    bool at_switches = true;  // false: stacks of context switches come from frame pointers
    bool operator==(const CopyConfig&) const = default;
};

// Per second, over all CPUs. The kernel needs about 3 % of one CPU to copy this much.
inline constexpr std::uint64_t max_copied_bytes = std::uint64_t{128} << 20;

class CopyBudget {
public:
    struct Options {
        bool adaptive = false;                     // auto mode
        bool whole_cpus = false;                   // one size for all processes, so copies may shrink
        std::uint32_t configured_bytes = 0;        // --stack-size
        std::uint64_t ring_bytes = 0;              // of a ring, if configured; 0: rings fit the samples
        std::uint64_t max_samples_per_second = 0;  // over all CPUs; 0: unknown
    };
    // Totals since the recording began.
    struct Counts {
        std::uint64_t lost_samples = 0;
        std::uint64_t truncated_stacks = 0;  // callers are missing because the copy was full
        std::uint64_t discarded_bytes = 0;   // copied for processes that are not recorded
    };

    void reset(const Options& options);
    // `full`: the stack is larger than its copy.
    void add_sample(bool at_switch, std::uint64_t copied_bytes, bool full) {
        ++samples_;
        stacks_ += copied_bytes != 0 ? 1 : 0;
        full_ += full ? 1 : 0;
        bytes_ += copied_bytes;
        switches_ += at_switch ? 1 : 0;
        if (at_switch) switch_bytes_ += copied_bytes;
    }
    // A LOST record. `counts` of update() has the exact number, but later.
    void add_lost(std::uint64_t samples) { lost_ += samples; }
    // So much is lost that update() should be called now: it stops the copies at context switches.
    [[nodiscard]] bool overwhelmed() const;
    // Ends a window if it is long enough, or if overwhelmed(). Returns the configuration to use from now on, usually
    // config().
    CopyConfig update(std::uint64_t now_ns, const Counts& counts);
    // The events now use `config`.
    void apply(CopyConfig config, std::uint64_t now_ns);

    [[nodiscard]] CopyConfig config() const { return config_; }
    // The copy size of samples in dwarf mode; 0 for CopySize::none.
    [[nodiscard]] std::uint32_t stack_bytes() const { return bytes_of(config_.size); }
    // Copies of the configured size fit the budget even if every CPU is always busy.
    [[nodiscard]] bool covers_all_samples() const { return covers_all_samples(CopySize::configured); }
    // Describes the change from `before` to config(). Empty for the maximum size, which loses nothing.
    [[nodiscard]] std::vector<wire::Notice> notices(CopyConfig before) const;

private:
    [[nodiscard]] std::uint32_t bytes_of(CopySize size) const;
    [[nodiscard]] bool covers_all_samples(CopySize size) const;
    [[nodiscard]] CopySize neighbor(int step) const;
    [[nodiscard]] bool may_shrink() const;
    [[nodiscard]] std::uint64_t per_second(std::uint64_t bytes) const;
    CopyConfig evaluate();
    [[nodiscard]] CopyConfig shrunk() const;
    CopyConfig grown();
    [[nodiscard]] bool switches_fit();

    Options options_;
    CopyConfig config_;
    Counts previous_, window_;
    std::uint64_t window_start_ns_ = 0, window_ns_ = 0;         // start 0: the next update() starts a window
    std::uint64_t samples_ = 0, full_ = 0, bytes_ = 0;          // in this window
    std::uint64_t switches_ = 0, switch_bytes_ = 0, lost_ = 0;  // in this window
    std::uint64_t bytes_per_second_ = 0;                        // in the last window
    std::uint64_t stacks_ = 0, truncated_ = 0;                  // copies since apply()
    std::uint32_t lossy_windows_ = 0, windows_with_room_ = 0;   // in a row
    std::uint32_t windows_for_switches_ = 0;                    // in a row, with room for their copies
    std::uint32_t switch_copies_stopped_ = 0;                   // how often
    bool shrank_ = false;                                       // in the last apply()
    bool maximum_was_lossy_ = false;
};

}  // namespace flamewire::agent
