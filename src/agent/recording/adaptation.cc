#include "agent/recording/adaptation.h"

#include <fmt/format.h>

#include <algorithm>

#include "agent/recording/requested_events.h"
#include "base/clock.h"

namespace flamewire::agent {
namespace {

// Events are not reopened more often than this.
constexpr std::uint64_t adapt_pause_ns = 500'000'000;
// The same after a failure.
constexpr std::uint64_t failed_adapt_pause_ns = 5'000'000'000;
// How often the count of events is compared with their samples.
constexpr std::uint64_t check_interval_ns = 250'000'000;

}  // namespace

void Adaptation::adapt_events(std::uint64_t now_ns) {
    throttle_events(now_ns);
    check_unsampled(now_ns);
}

void Adaptation::adapt_stacks(std::uint64_t now_ns, const EventSetCounts& counts) {
    adapt_modes(now_ns);
    adapt_copies(now_ns, counts);
}

// `auto`: changes the mode of processes to what their stacks need.
void Adaptation::adapt_modes(std::uint64_t now_ns) {
    if (parts_.events.current().samples_whole_cpus() || parts_.setup.plan.settings.unwind != "auto" ||
        !parts_.setup.capabilities.user_stacks || now_ns < next_modes_ns_)
        return;
    const std::vector<Folder::ModeChange> changes = parts_.folder.wanted_stack_modes();
    if (changes.empty()) return;
    next_modes_ns_ = now_ns + adapt_pause_ns;
    StackSampling::Modes old_modes = parts_.stacks.modes();
    bool raised = false, changed = false;
    for (const Folder::ModeChange& change : changes) {
        if (change.pid == 0) {
            raised = parts_.stacks.raise_inherited(change.choice) || raised;
        } else {
            parts_.stacks.set_mode(change.pid, change.choice);
            changed = true;
        }
    }
    // The mode is not lower for any target. Existing processes keep their mode.
    if (!raised && !changed) return parts_.folder.chose_stack_mode(0, {});
    if (const auto switched = parts_.events.switch_to(parts_.setup.choice); !switched) {
        // Usually a process has just exited. The next attempt leaves it out.
        parts_.stacks.set_modes(std::move(old_modes));
        next_modes_ns_ = now_ns + failed_adapt_pause_ns;
        return;
    }
    for (const Folder::ModeChange& change : changes) parts_.folder.chose_stack_mode(change.pid, change.choice);
    if (raised)
        for (const std::uint32_t pid : parts_.setup.plan.pids)
            parts_.folder.chose_stack_mode(pid, parts_.stacks.mode(pid));
}

void Adaptation::adapt_copies(std::uint64_t now_ns, const EventSetCounts& counts) {
    const CopyConfig before = parts_.stacks.copies().config();
    const CopyConfig wanted = parts_.stacks.copies().update(
        now_ns, {counts.samples_lost, parts_.folder.truncated_copies(), counts.discarded_stack_bytes});
    if (wanted == before) return;
    parts_.stacks.copies().apply(wanted, now_ns);
    // Reopening fails if the target has just exited.
    if (const auto switched = parts_.events.switch_to(parts_.setup.choice); !switched)
        return parts_.stacks.copies().apply(before, now_ns);
    parts_.batch.add_notices(parts_.stacks.copies().notices(before));
    (void)parts_.description.update();
}

// Samples every fault and every hit of a probe until there are too many.
void Adaptation::throttle_events(std::uint64_t now_ns) {
    if (!parts_.throttle.complete(now_ns)) return;
    if (parts_.throttle.too_many(now_ns)) {
        EventChoice choice = parts_.setup.choice;
        std::vector<std::string_view> names;
        std::uint64_t period = 0;
        for (EventSpec& spec : choice.events) {
            if (spec.period == 0) continue;
            period = spec.period *= EventThrottle::step;
            names.push_back(spec.name);
        }
        const std::string summary = summarize_names(names);
        // This fails if the target has just exited.
        if (parts_.events.switch_to(std::move(choice)))
            parts_.batch.add_notice(
                "events-thinned",
                fmt::format("Too many samples of {}: from now on a sample stands for {} events.", summary, period),
                "--count N sets how many");
    }
    parts_.throttle.begin(monotonic_ns());
}

void Adaptation::check_unsampled(std::uint64_t now_ns) {
    if (now_ns < next_unsampled_ns_ || parts_.setup.plan.scope.wide || parts_.events.paused()) return;
    next_unsampled_ns_ = now_ns + check_interval_ns;
    const std::vector<Unsampled> reports = parts_.events.add_unsampled(now_ns);
    if (unsampled_policy_.add(reports, now_ns) && !whole_cpus_refused_) sample_whole_cpus();
}

// Events of whole CPUs have the same mode for all processes.
void Adaptation::use_one_mode() {
    if (parts_.setup.plan.settings.unwind != "auto") return;
    parts_.folder.change_stacks(parts_.stacks.unwinding());
    parts_.stacks.reset_modes();
    for (const auto& [pid, choice] : parts_.stacks.modes()) parts_.folder.chose_stack_mode(pid, choice);
}

void Adaptation::sample_whole_cpus() {
    wire::Notice notice{
        "short-lived-threads",
        fmt::format("{}% of {} is in threads that exit before their next sample.", unsampled_policy_.missing_percent(),
                    parts_.setup.choice.events[unsampled_policy_.event()].name),
        ""};
    const bool by_frequency =
        parts_.setup.choice.period == 0 && std::ranges::all_of(parts_.setup.choice.events, [](const EventSpec& spec) {
            return spec.period == 0 && spec.filter.empty();
        });
    const CopyBudget before = parts_.stacks.copies();
    parts_.stacks.prefer_whole_cpus(true);
    parts_.stacks.reset_copies(parts_.setup.choice);
    if (!by_frequency) {
        notice.remedy = "record this event alone";
    } else if (parts_.setup.plan.settings.unwind == "dwarf" && !parts_.stacks.copies().covers_all_samples()) {
        notice.remedy = "--unwind auto, or a lower --frequency";
    } else if (auto set = parts_.events.open_replacement(parts_.setup.choice); set && (*set)->samples_whole_cpus()) {
        if (parts_.events.replace(std::move(*set), parts_.setup.choice)) {
            use_one_mode();
            notice.text += " From now on, whole CPUs are sampled.";
            return parts_.batch.add_notice(std::move(notice.code), std::move(notice.text), std::move(notice.remedy));
        }
    } else {
        notice.remedy = "run the agent as root, or setcap cap_perfmon,cap_sys_ptrace+ep flamewire-agent";
    }
    parts_.stacks.prefer_whole_cpus(false);
    whole_cpus_refused_ = true;
    parts_.stacks.copies() = before;
    parts_.batch.add_notice(std::move(notice.code), std::move(notice.text), std::move(notice.remedy));
}

}  // namespace flamewire::agent
