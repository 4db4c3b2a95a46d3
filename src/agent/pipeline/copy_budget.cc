#include "agent/pipeline/copy_budget.h"

#include <algorithm>

namespace flamewire::agent {
namespace {

constexpr std::uint32_t shortened_stack_bytes = 4'096;
constexpr std::uint64_t ns_per_s = 1'000'000'000;
constexpr std::uint64_t window_length_ns = 500'000'000;
// More losses than this, of 1,000 samples, in so many windows in a row: a start or a burst passes.
constexpr std::uint64_t lost_of_1000 = 1;
constexpr std::uint32_t windows_to_shrink = 2;
// After copies shrank, there must have been room for larger ones for so long.
constexpr std::uint32_t windows_to_grow = 20;
// More stacks than these were deeper than their copies: a longer copy is worth its price.
constexpr std::uint64_t cut_to_grow = 8, cut_of_1000_to_grow = 5;

}  // namespace

std::uint32_t CopyBudget::bytes_of(CopySize size) const {
    switch (size) {
        case CopySize::longest:
            return plan_.longest_bytes;
        case CopySize::usual:
            return plan_.usual_bytes;
        case CopySize::shortened:
            return std::min(plan_.usual_bytes, shortened_stack_bytes);
        case CopySize::none:
            break;
    }
    return 0;
}

// The next smaller or larger one; sizes can be equal.
CopySize CopyBudget::other_size(int step) const {
    int size = static_cast<int>(copies_.size);
    do size += step;
    while (size > static_cast<int>(CopySize::longest) && size < static_cast<int>(CopySize::none) &&
           bytes_of(static_cast<CopySize>(size)) == stack_bytes());
    return static_cast<CopySize>(size);
}

void CopyBudget::begin(const Plan& plan) {
    plan_ = plan;
    copies_ = {};
    lost_when_longest_ = false;
    chose({}, 0);
    // As if each stack were that deep.
    const bool fits = plan.samples_per_s != 0 && plan.samples_per_s * bytes_of(CopySize::longest) <= most_copied_bytes;
    if (plan.adapts && plan.of_all && fits) copies_.size = CopySize::longest;
}

void CopyBudget::chose(StackCopies copies, std::uint64_t now_ns) {
    shrank_ = copies.size > copies_.size;
    copies_ = copies;
    lossy_windows_ = quiet_windows_ = 0;
    window_ns_ = now_ns;
    samples_ = full_ = bytes_ = switch_bytes_ = stacks_ = cut_ = 0;
}

std::optional<StackCopies> CopyBudget::change(std::uint64_t now_ns, const Counts& counts) {
    if (window_ns_ == 0) {
        before_ = counts;
        chose(copies_, now_ns);
    }
    elapsed_ns_ = now_ns - window_ns_;
    if (elapsed_ns_ < window_length_ns) return std::nullopt;
    in_window_ = {counts.lost - before_.lost, counts.cut - before_.cut};
    before_ = counts;
    cut_ += in_window_.cut;
    bytes_per_second_ = per_second(bytes_);
    const std::optional<StackCopies> changed = judge();
    window_ns_ = now_ns;
    samples_ = full_ = bytes_ = switch_bytes_ = 0;
    return changed;
}

std::uint64_t CopyBudget::per_second(std::uint64_t bytes) const {
    return static_cast<std::uint64_t>(static_cast<double>(bytes) * ns_per_s / static_cast<double>(elapsed_ns_));
}

std::optional<StackCopies> CopyBudget::judge() {
    const bool lossy = in_window_.lost * 1000 > (samples_ + in_window_.lost) * lost_of_1000;
    lossy_windows_ = lossy ? lossy_windows_ + 1 : 0;
    if (lossy_windows_ >= windows_to_shrink) {
        const std::optional<StackCopies> smaller = less();
        if (smaller && copies_.size == CopySize::longest && smaller->size != copies_.size) lost_when_longest_ = true;
        return smaller;
    }
    if (shrinks() && bytes_per_second_ > most_copied_bytes) return less();
    if (lossy) quiet_windows_ = 0;
    return lossy ? std::nullopt : more();
}

bool CopyBudget::shrinks() const { return plan_.adapts && (plan_.of_all || copies_.size == CopySize::longest); }

// What fills the rings goes first.
std::optional<StackCopies> CopyBudget::less() const {
    if (switch_bytes_ != 0 && (switch_bytes_ > bytes_ / 2 || !shrinks())) return StackCopies{copies_.size, false};
    if (copies_.size == CopySize::none || !shrinks()) return std::nullopt;
    return StackCopies{other_size(1), copies_.at_switches};
}

std::optional<StackCopies> CopyBudget::more() {
    if (!plan_.adapts || copies_.size == CopySize::longest) return std::nullopt;
    const CopySize larger = other_size(-1);
    if (larger == CopySize::longest) {
        const bool deep = cut_ >= cut_to_grow && cut_ * 1000 > stacks_ * cut_of_1000_to_grow;
        if (!deep || lost_when_longest_) return std::nullopt;
    }
    // Half of the budget must do, so that it is not exceeded at once.
    const std::uint32_t now = stack_bytes();
    const std::uint64_t longer = now != 0 ? full_ : samples_;
    const bool room = per_second(bytes_ + longer * (bytes_of(larger) - now)) <= most_copied_bytes / 2;
    quiet_windows_ = room ? quiet_windows_ + 1 : 0;
    const bool shrank = shrank_ || copies_.size != CopySize::usual;
    if (quiet_windows_ < (shrank ? windows_to_grow : 1)) return std::nullopt;
    return StackCopies{larger, copies_.at_switches};
}

}  // namespace flamewire::agent
