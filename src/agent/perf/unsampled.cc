#include "agent/perf/unsampled.h"

#include <algorithm>

namespace flamewire::agent {
namespace {

// Each live thread has part of a period that is in no sample yet, so a smaller share is not significant.
constexpr std::uint64_t min_percent = 1;
// An exited thread misses less than one period on each CPU on which it ran. Short-lived threads seldom migrate more
// than once.
constexpr std::uint64_t periods_per_thread = 2;

// With fewer threads, their unfinished periods are no more than those of live threads.
constexpr std::uint64_t many_threads = 8;

constexpr std::uint64_t window_ns = 1'000'000'000;
constexpr std::uint64_t whole_cpus_percent = 10;
constexpr std::uint32_t hits_in_a_row = 2;

std::uint64_t period_of(const UnsampledAccount::Totals& totals) {
    return totals.samples != 0 ? totals.sampled / totals.samples : totals.period;
}

}  // namespace

bool UnsampledAccount::matters(const Totals& totals) {
    const std::uint64_t period = period_of(totals);
    if (totals.exited_threads < many_threads) return false;
    return period == 0 || totals.exited_threads * periods_per_thread * period >= totals.all_sampled / 100 * min_percent;
}

Unsampled UnsampledAccount::update(const Totals& totals, std::uint64_t undrained_per_1000) {
    const std::uint64_t period = period_of(totals);
    Unsampled report;
    report.counted = totals.counted - std::min(totals.counted, before_.counted);
    report.exited_threads = totals.exited_threads - before_.exited_threads;
    const std::uint64_t accounted =
        totals.sampled + totals.lost_samples * period + report.counted / 1000 * undrained_per_1000;
    std::uint64_t missing = totals.counted - std::min(totals.counted, accounted);
    if (period != 0) missing = std::min(missing, totals.exited_threads * periods_per_thread * period);
    report.recent = missing - std::min(missing, missing_);
    before_ = totals;
    missing_ = std::max(missing_, missing);
    if (missing_ < totals.all_counted / 100 * min_percent || missing_ < reported_ + period) return report;
    report.missing = missing_ - reported_;
    reported_ = missing_;
    return report;
}

bool UnsampledPolicy::add(std::span<const Unsampled> reports, std::uint64_t now_ns) {
    if (now_ns >= window_end_ns_) {
        counted_ = missing_ = exited_threads_ = 0;
        window_end_ns_ = now_ns + window_ns;
    }
    if (reports.empty()) {
        hits_ = 0;
        return false;
    }
    event_ = reports.front().event;
    // All targets have the same number of exited threads.
    exited_threads_ += reports.front().exited_threads;
    for (const Unsampled& report : reports) {
        if (report.event != event_) continue;
        counted_ += report.counted;
        missing_ += report.recent;
    }
    const bool much = exited_threads_ >= many_threads && missing_percent() >= whole_cpus_percent;
    hits_ = much ? hits_ + 1 : 0;
    return hits_ >= hits_in_a_row;
}

std::uint64_t UnsampledPolicy::missing_percent() const {
    return std::min<std::uint64_t>(100, missing_ * 100 / std::max<std::uint64_t>(1, counted_));
}

}  // namespace flamewire::agent
