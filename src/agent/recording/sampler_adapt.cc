// What the sampler adapts to measurements: stack modes, the size of stack copies, the period of faults, and events of
// whole CPUs if threads exit early.
#include <fmt/format.h>

#include <algorithm>

#include "agent/recording/sampler.h"
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

// `auto`: changes the mode of processes to what their stacks need.
void Sampler::adapt_stack_modes(std::uint64_t now_ns) {
    if (events_.current().samples_whole_cpus() || setup_.plan.settings.unwind != "auto" ||
        !setup_.capabilities.user_stacks || now_ns < next_adapt_ns_)
        return;
    const std::vector<Folder::ModeChange> changes = folder_.wanted_stack_modes();
    if (changes.empty()) return;
    next_adapt_ns_ = now_ns + adapt_pause_ns;
    StackSampling::Modes old_modes = stacks_.modes();
    bool raised = false, changed = false;
    for (const Folder::ModeChange& change : changes) {
        if (change.pid == 0) {
            raised = stacks_.raise_inherited(change.choice) || raised;
        } else {
            stacks_.set_mode(change.pid, change.choice);
            changed = true;
        }
    }
    // The mode is not lower for any target. Existing processes keep their mode.
    if (!raised && !changed) return folder_.chose_stack_mode(0, {});
    if (const auto switched = events_.switch_to(setup_.choice); !switched) {
        // Usually a process has just exited. The next attempt leaves it out.
        stacks_.set_modes(std::move(old_modes));
        next_adapt_ns_ = now_ns + failed_adapt_pause_ns;
        return;
    }
    for (const Folder::ModeChange& change : changes) folder_.chose_stack_mode(change.pid, change.choice);
    if (raised)
        for (const std::uint32_t pid : setup_.plan.pids) folder_.chose_stack_mode(pid, stacks_.mode(pid));
}

void Sampler::adapt_stack_copies(std::uint64_t now_ns) {
    const CopyConfig before = stacks_.copies().config();
    const CopyConfig wanted = stacks_.copies().update(
        now_ns, {counts_.samples_lost, folder_.truncated_copies(), counts_.discarded_stack_bytes});
    if (wanted == before) return;
    stacks_.copies().apply(wanted, now_ns);
    // Reopening fails if the target has just exited.
    if (const auto switched = events_.switch_to(setup_.choice); !switched)
        return stacks_.copies().apply(before, now_ns);
    batch_.add_notices(stacks_.copies().notices(before));
    (void)description_.update();
}

// Samples every fault until there are too many.
void Sampler::throttle_faults(std::uint64_t now_ns) {
    if (!fault_throttle_.complete(now_ns)) return;
    if (fault_throttle_.too_many(now_ns)) {
        EventChoice choice = setup_.choice;
        std::uint64_t period = 0;
        for (EventSpec& spec : choice.events)
            if (spec.period != 0) period = spec.period *= FaultThrottle::step;
        // This fails if the target has just exited.
        if (events_.switch_to(std::move(choice)))
            batch_.add_notice(
                "faults-thinned",
                fmt::format("Faults are so frequent that from now on a sample stands for {} of them.", period),
                "--count N sets how many");
    }
    fault_throttle_.begin(monotonic_ns());
}

void Sampler::check_unsampled(std::uint64_t now_ns) {
    if (now_ns < next_unsampled_ns_ || setup_.plan.scope.wide || events_.paused()) return;
    next_unsampled_ns_ = now_ns + check_interval_ns;
    const std::vector<Unsampled> reports = events_.add_unsampled(now_ns);
    if (unsampled_policy_.add(reports, now_ns) && !whole_cpus_refused_) sample_whole_cpus();
}

// Events of whole CPUs have the same mode for all processes.
void Sampler::use_one_mode() {
    if (setup_.plan.settings.unwind != "auto") return;
    folder_.change_stacks(stacks_.unwinding());
    stacks_.reset_modes();
    for (const auto& [pid, choice] : stacks_.modes()) folder_.chose_stack_mode(pid, choice);
}

void Sampler::sample_whole_cpus() {
    wire::Notice notice{
        "short-lived-threads",
        fmt::format("{}% of {} is in threads that exit before their next sample.", unsampled_policy_.missing_percent(),
                    setup_.choice.events[unsampled_policy_.event()].name),
        ""};
    const bool by_frequency =
        setup_.choice.period == 0 && std::ranges::all_of(setup_.choice.events, [](const EventSpec& spec) {
            return spec.period == 0 && spec.filter.empty();
        });
    const CopyBudget before = stacks_.copies();
    stacks_.prefer_whole_cpus(true);
    stacks_.reset_copies(setup_.choice);
    if (!by_frequency) {
        notice.remedy = "record this event alone";
    } else if (setup_.plan.settings.unwind == "dwarf" && !stacks_.copies().covers_all_samples()) {
        notice.remedy = "--unwind auto, or a lower --frequency";
    } else if (auto set = events_.open_replacement(setup_.choice); set && (*set)->samples_whole_cpus()) {
        if (events_.replace(std::move(*set), setup_.choice)) {
            use_one_mode();
            notice.text += " From now on, whole CPUs are sampled.";
            return batch_.add_notice(std::move(notice.code), std::move(notice.text), std::move(notice.remedy));
        }
    } else {
        notice.remedy = "run the agent as root, or setcap cap_perfmon,cap_sys_ptrace+ep flamewire-agent";
    }
    stacks_.prefer_whole_cpus(false);
    whole_cpus_refused_ = true;
    stacks_.copies() = before;
    batch_.add_notice(std::move(notice.code), std::move(notice.text), std::move(notice.remedy));
}

}  // namespace flamewire::agent
