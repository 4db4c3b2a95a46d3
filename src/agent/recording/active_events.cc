#include "agent/recording/active_events.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "agent/log.h"
#include "base/clock.h"

namespace flamewire::agent {
namespace {

constexpr int open_attempts = 3;

EventSetCounts operator+(const EventSetCounts& a, const EventSetCounts& b) {
    // ring_bytes is a state, not a count.
    return {a.samples_read + b.samples_read,
            a.samples_duplicate + b.samples_duplicate,
            a.samples_lost + b.samples_lost,
            a.late_records + b.late_records,
            b.ring_bytes,
            a.discarded_stack_bytes + b.discarded_stack_bytes};
}

}  // namespace

Result<bool> ActiveEvents::open(const EventSetOptions& options) {
    current_ = TRY(EventSet::open(options, parts_.setup.capabilities, *parts_.setup.environment.kernel));
    return true;
}

Result<std::unique_ptr<EventSet>> ActiveEvents::open_replacement(const EventChoice& choice) {
    parts_.priority_boost.begin();
    for (int attempt = 1;; ++attempt) {
        EventSetOptions options = parts_.stacks.event_options(choice, parts_.members.living());
        for (Target& target : options.targets) target.origin = parts_.members.origin_of(target.pid);
        options.start_disabled = true;
        options.observer = this;
        auto set = EventSet::open(options, parts_.setup.capabilities, *parts_.setup.environment.kernel);
        // A thread has few breakpoints, and the set in use may have them all. Its hits end here.
        const int lacking = set ? (*set)->lacking() : set.error().errno_value;
        if (lacking == ENOSPC && current_->close_breakpoints()) {
            breakpoints_closed_ = true;
            continue;
        }
        // A process can exit between living() and EventSet::open().
        const bool exited = !set && set.error().code == ErrorCode::not_found && !parts_.setup.plan.scope.wide;
        if (!exited || attempt == open_attempts || parts_.members.living().empty()) return set;
    }
}

Result<bool> ActiveEvents::switch_to(EventChoice choice) {
    std::unique_ptr<EventSet> replacement = TRY(open_replacement(choice));
    return replace(std::move(replacement), std::move(choice));
}

Result<bool> ActiveEvents::replace(std::unique_ptr<EventSet> replacement, EventChoice choice) {
    // The new set is open but disabled. Stop the old one before starting the new one, so that no sample is in both.
    const std::uint64_t stopping_ns = monotonic_ns();
    (void)current_->disable();
    const std::uint64_t switched_ns = monotonic_ns();
    const bool counting = sampling();
    if (counting)
        if (auto enabled = replacement->enable(); !enabled) {
            (void)current_->enable();
            return enabled;
        }
    switched_ns_ = stopping_ns;
    gap_ns_ = counting ? monotonic_ns() - stopping_ns : 0;
    current_->drain_rest(parts_.sink);
    (void)add_unsampled(switched_ns);
    replacement->follow(parts_.members.pids());
    // Report the gap only now, after the rest of the old set. The new set has been recording since it was enabled.
    OffCpuTracker& off_cpu = parts_.folder.off_cpu();
    if (counting)
        off_cpu.gap(stopping_ns, stopping_ns + gap_ns_, OffCpuTracker::Gap::exchange);
    else
        off_cpu.gap(paused_ ? paused_ns_ : stopping_ns, monotonic_ns(), OffCpuTracker::Gap::pause);
    if (paused_) paused_ns_ = monotonic_ns();
    parts_.folder.emit_off_cpu();
    closed_counts_ = closed_counts_ + current_->counts();
    sideband_from_ns_ = switched_ns;
    current_ = std::move(replacement);
    breakpoints_closed_ = false;
    parts_.setup.choice = std::move(choice);
    return true;
}

void ActiveEvents::reopen_breakpoints() {
    if (!std::exchange(breakpoints_closed_, false)) return;
    // The error is not_found if the target has just exited.
    const auto reopened = switch_to(parts_.setup.choice);
    if (!reopened && reopened.error().code != ErrorCode::not_found)
        parts_.batch.add_notice(
            "breakpoints-ended",
            fmt::format("The breakpoints of this recording have no more hits: {}", reopened.error().message),
            "start a new recording");
}

std::uint64_t ActiveEvents::drain() {
    const std::uint64_t drained_ns = std::min(parts_.processes.exchange_jit_names(), monotonic_ns());
    current_->drain(parts_.sink, drained_ns);
    return drained_ns;
}

std::vector<Unsampled> ActiveEvents::add_unsampled(std::uint64_t now_ns) {
    std::vector<Unsampled> reports = current_->take_unsampled(now_ns);
    for (const Unsampled& report : reports) {
        if (report.missing == 0) continue;
        parts_.folder.add_unsampled(report.event, report.pid, report.missing, now_ns);
        parts_.batch.mark();
    }
    return reports;
}

EventSetCounts ActiveEvents::counts() { return closed_counts_ + current_->counts(); }

Result<bool> ActiveEvents::pause(Counting& counting) {
    (void)TRY(current_->disable());
    (void)TRY(counting.pause(parts_.folder));
    paused_ns_ = monotonic_ns();
    paused_ = true;
    return true;
}

Result<bool> ActiveEvents::resume(Counting& counting) {
    if (paused_) parts_.folder.off_cpu().gap(paused_ns_, monotonic_ns(), OffCpuTracker::Gap::pause);
    (void)TRY(current_->enable());
    (void)TRY(counting.resume());
    paused_ = false;
    return true;
}

bool ActiveEvents::enable_if_due(std::uint64_t now_ns) {
    if (!enable_at_ns_ || now_ns < *enable_at_ns_) return false;
    enable_at_ns_.reset();
    if (auto enabled = current_->enable(); !enabled) log("cannot start sampling: {}", enabled.error().message);
    return true;
}

}  // namespace flamewire::agent
