#include "agent/pipeline/copy_budget.h"

#include <fmt/format.h>

#include <algorithm>

#include "agent/perf/event_set_options.h"

namespace flamewire::agent {
namespace {

constexpr std::uint32_t reduced_bytes = 4'096;
constexpr std::uint64_t ns_per_ms = 1'000'000;
constexpr std::uint64_t min_window_ns = 500'000'000;
// A window is lossy with more than 0.1 %. A startup or a burst may lose samples: lasting loss is two such windows.
constexpr std::uint64_t lossy_per_1000 = 1;
constexpr std::uint32_t windows_before_shrinking = 2;
// A loss of 1 % of a window, and of this many samples, stops the copies at context switches before the window ends.
constexpr std::uint64_t overwhelmed_per_1000 = 10, overwhelmed_least = 100;
// Copies at context switches begin again only once.
constexpr std::uint32_t most_switch_copies_stopped = 2;
// After shrinking, growing needs ten seconds with room for it.
constexpr std::uint32_t windows_before_growing_again = 20;
// A maximum copy is worth its cost if at least 8 stacks, and more than 0.5 %, are truncated.
constexpr std::uint64_t min_truncated = 8, truncated_per_1000 = 5;
// A configured ring has room for at least this many samples.
constexpr std::uint64_t min_samples_per_ring = 8;

}  // namespace

std::uint32_t CopyBudget::bytes_of(CopySize size) const {
    const std::uint32_t configured = options_.configured_bytes;
    if (size == CopySize::none) return 0;
    if (size == CopySize::reduced) return std::min(configured, reduced_bytes);
    if (size == CopySize::configured) return configured;
    std::uint64_t maximum = highest_stack_bytes;
    if (options_.ring_bytes != 0) maximum = std::min(maximum, options_.ring_bytes / min_samples_per_ring / 8 * 8);
    return std::max(configured, static_cast<std::uint32_t>(maximum));
}

// The next size in this direction that has another number of bytes.
CopySize CopyBudget::neighbor(int step) const {
    int size = static_cast<int>(config_.size);
    do size += step;
    while (size > static_cast<int>(CopySize::maximum) && size < static_cast<int>(CopySize::none) &&
           bytes_of(static_cast<CopySize>(size)) == stack_bytes());
    return static_cast<CopySize>(size);
}

void CopyBudget::reset(const Options& options) {
    options_ = options;
    config_ = {};
    maximum_was_lossy_ = false;
    switch_copies_stopped_ = 0;
    apply({}, 0);
    if (options.adaptive && options.whole_cpus && covers_all_samples(CopySize::maximum))
        config_.size = CopySize::maximum;
}

bool CopyBudget::covers_all_samples(CopySize size) const {
    const std::uint64_t rate = options_.max_samples_per_second;
    return rate != 0 && rate * bytes_of(size) <= max_copied_bytes;
}

void CopyBudget::apply(CopyConfig config, std::uint64_t now_ns) {
    shrank_ = config.size > config_.size;
    if (config_.at_switches && !config.at_switches) ++switch_copies_stopped_;
    config_ = config;
    lossy_windows_ = windows_with_room_ = windows_for_switches_ = 0;
    window_start_ns_ = now_ns;
    samples_ = full_ = bytes_ = switches_ = switch_bytes_ = lost_ = stacks_ = truncated_ = 0;
}

bool CopyBudget::overwhelmed() const {
    return config_.at_switches && switch_bytes_ != 0 && lost_ >= overwhelmed_least &&
           lost_ * 1000 > (samples_ + lost_) * overwhelmed_per_1000;
}

CopyConfig CopyBudget::update(std::uint64_t now_ns, const Counts& counts) {
    if (window_start_ns_ == 0) {
        previous_ = counts;
        apply(config_, now_ns);
    }
    window_ns_ = now_ns - window_start_ns_;
    if (window_ns_ < min_window_ns && !overwhelmed()) return config_;
    window_ns_ = std::max(window_ns_, ns_per_ms);
    window_ = {counts.lost_samples - previous_.lost_samples, counts.truncated_stacks - previous_.truncated_stacks,
               counts.discarded_bytes - previous_.discarded_bytes};
    previous_ = counts;
    bytes_ += window_.discarded_bytes;
    truncated_ += window_.truncated_stacks;
    bytes_per_second_ = per_second(bytes_);
    const CopyConfig wanted = evaluate();
    window_start_ns_ = now_ns;
    samples_ = full_ = bytes_ = switches_ = switch_bytes_ = lost_ = 0;
    return wanted;
}

std::uint64_t CopyBudget::per_second(std::uint64_t bytes) const { return bytes * 1'000 / (window_ns_ / ns_per_ms); }

CopyConfig CopyBudget::evaluate() {
    const std::uint64_t lost = window_.lost_samples;
    const bool lossy = lost * 1000 > (samples_ + lost) * lossy_per_1000;
    lossy_windows_ = lossy ? lossy_windows_ + 1 : 0;
    if ((lossy || overwhelmed()) && config_.at_switches && switch_bytes_ != 0) return {config_.size, false};
    if (lossy_windows_ >= windows_before_shrinking) {
        const CopyConfig smaller = shrunk();
        if (config_.size == CopySize::maximum && smaller.size != config_.size) maximum_was_lossy_ = true;
        return smaller;
    }
    if (may_shrink() && bytes_per_second_ > max_copied_bytes) return shrunk();
    if (lossy) windows_with_room_ = windows_for_switches_ = 0;
    return lossy ? config_ : grown();
}

bool CopyBudget::may_shrink() const {
    return options_.adaptive && (options_.whole_cpus || config_.size == CopySize::maximum);
}

// Copies of context switches go first if they are most of the bytes, or if nothing else may shrink.
CopyConfig CopyBudget::shrunk() const {
    if (switch_bytes_ != 0 && (switch_bytes_ > bytes_ / 2 || !may_shrink())) return {config_.size, false};
    if (config_.size == CopySize::none || !may_shrink()) return config_;
    return {neighbor(1), config_.at_switches};
}

// Copies at switches need room in the rings for their full size, however few bytes of it the kernel fills.
bool CopyBudget::switches_fit() {
    if (config_.at_switches || stack_bytes() == 0 || switch_copies_stopped_ >= most_switch_copies_stopped) return false;
    const bool room = per_second(bytes_ + switches_ * stack_bytes()) <= max_copied_bytes / 2;
    windows_for_switches_ = room ? windows_for_switches_ + 1 : 0;
    return windows_for_switches_ >= windows_before_growing_again;
}

CopyConfig CopyBudget::grown() {
    if (switches_fit()) return {config_.size, true};
    if (!options_.adaptive || config_.size == CopySize::maximum) return config_;
    const CopySize larger = neighbor(-1);
    if (larger == CopySize::maximum) {
        const bool deep = truncated_ >= min_truncated && truncated_ * 1000 > stacks_ * truncated_per_1000;
        if (!deep || maximum_was_lossy_) return config_;
    }
    // The larger copies must fit into half of the budget; only those that are full now become larger.
    const std::uint32_t now = stack_bytes();
    const std::uint64_t longer = now != 0 ? full_ : samples_;
    const bool room = per_second(bytes_ + longer * (bytes_of(larger) - now)) <= max_copied_bytes / 2;
    windows_with_room_ = room ? windows_with_room_ + 1 : 0;
    const bool after_shrinking = shrank_ || config_.size != CopySize::configured;
    if (windows_with_room_ < (after_shrinking ? windows_before_growing_again : 1)) return config_;
    return {larger, config_.at_switches};
}

std::vector<wire::Notice> CopyBudget::notices(CopyConfig before) const {
    if (config_.size == CopySize::maximum && config_.at_switches == before.at_switches) return {};
    if (config_.at_switches && !before.at_switches)
        return {{"stack-copies", "From now on, the agent copies stacks at context switches again.", {}}};
    const char* what = "the agent copies --stack-size bytes of each stack";
    if (config_.size == CopySize::reduced) what = "the agent copies 4 KiB of each stack";
    if (config_.size == CopySize::none) what = "stacks come from frame pointers";
    if (config_.at_switches != before.at_switches) what = "stacks of context switches come from frame pointers";
    const bool lossy = window_.lost_samples != 0;
    const std::uint64_t number = lossy ? window_.lost_samples : bytes_per_second_ / 1'000'000;
    const char* const unit = lossy ? "samples were lost" : "MB of stacks were copied per second";
    return {{"stack-copies", fmt::format("{} {}. From now on, {}.", number, unit, what),
             "use a lower --frequency or a smaller --stack-size"}};
}

}  // namespace flamewire::agent
