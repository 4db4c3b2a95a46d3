// How much of the users' stacks is copied with samples. Where `auto` chooses, copies grow when stacks are deeper and a
// budget of bytes per second allows it. Where one event serves all processes of a CPU, they shrink when they exceed that
// budget. When records are lost, the copies at context switches are left out first. Pure.
#pragma once

#include <cstdint>
#include <optional>

#include "wire/batch.h"

namespace flamewire::agent {

enum class CopySize : std::uint8_t { longest, usual, shortened, none };

struct StackCopies {
    CopySize size = CopySize::usual;
    bool at_switches = true;  // else the stacks of switches come from frame pointers
    bool operator==(const StackCopies&) const = default;
};

// Per second, of all CPUs. The kernel takes some 3 % of one processor's time to copy so much.
inline constexpr std::uint64_t most_copied_bytes = std::uint64_t{128} << 20;

class CopyBudget {
public:
    struct Plan {
        bool adapts = false;              // auto mode
        bool of_all = false;              // events of whole CPUs: copies may shrink
        std::uint32_t usual_bytes = 0;    // --stack-size
        std::uint32_t longest_bytes = 0;  // at least usual_bytes
        std::uint64_t samples_per_s = 0;  // at most, of all CPUs; 0: not known
    };
    struct Counts {
        std::uint64_t lost = 0;  // samples
        std::uint64_t cut = 0;   // stacks that lack callers because their copies were full
    };

    // What was chosen before is forgotten.
    void begin(const Plan& plan);
    // One sample; `full`: the stack is deeper than its copy.
    void note(bool at_switch, std::uint64_t copied_bytes, bool full) {
        ++samples_;
        stacks_ += copied_bytes != 0 ? 1 : 0;
        full_ += full ? 1 : 0;
        bytes_ += copied_bytes;
        if (at_switch) switch_bytes_ += copied_bytes;
    }
    // What to copy from now on, if that is something else. `counts`: since the recording began.
    std::optional<StackCopies> change(std::uint64_t now_ns, const Counts& counts);
    // The change was made, or it failed and the old copies go on.
    void chose(StackCopies copies, std::uint64_t now_ns);

    [[nodiscard]] StackCopies copies() const { return copies_; }
    // Of a sample in dwarf mode; 0 if copies().size is none.
    [[nodiscard]] std::uint32_t stack_bytes() const { return bytes_of(copies_.size); }
    // In the last window that change() looked at.
    [[nodiscard]] std::uint64_t bytes_per_second() const { return bytes_per_second_; }
    [[nodiscard]] std::uint64_t lost() const { return in_window_.lost; }

private:
    [[nodiscard]] std::uint32_t bytes_of(CopySize size) const;
    [[nodiscard]] CopySize other_size(int step) const;
    [[nodiscard]] bool shrinks() const;
    [[nodiscard]] std::uint64_t per_second(std::uint64_t bytes) const;
    std::optional<StackCopies> judge();
    [[nodiscard]] std::optional<StackCopies> less() const;
    [[nodiscard]] std::optional<StackCopies> more();

    Plan plan_;
    StackCopies copies_;
    Counts before_, in_window_;
    std::uint64_t window_ns_ = 0, elapsed_ns_ = 0;  // when the window began (0: at the next change()), and its length
    std::uint64_t samples_ = 0, full_ = 0, bytes_ = 0, switch_bytes_ = 0;  // of the window
    std::uint64_t bytes_per_second_ = 0;                                   // of the last window
    std::uint64_t stacks_ = 0, cut_ = 0;                                   // copied, and cut, since copies_ were chosen
    std::uint32_t lossy_windows_ = 0, quiet_windows_ = 0;                  // in a row
    bool shrank_ = false;                                                  // at the last choice
    bool lost_when_longest_ = false;
};

}  // namespace flamewire::agent
