// Threads that exit before their first sample: reports the weight that is in no sample, and samples whole CPUs instead
// if much is missing and the user may.
#include <fmt/format.h>

#include <algorithm>

#include "agent/recorder.h"
#include "base/clock.h"

namespace flamewire::agent {
namespace {

constexpr std::uint64_t look_interval_ns = 250'000'000;

}  // namespace

void Recorder::look_at_unsampled(std::uint64_t now_ns) {
    if (now_ns < next_unsampled_ns_ || plan_.scope.wide || paused_) return;
    next_unsampled_ns_ = now_ns + look_interval_ns;
    const std::vector<Unsampled> reports = add_unsampled(now_ns);
    if (unsampled_policy_.add(reports, now_ns) && !whole_cpus_refused_) sample_whole_cpus();
}

std::vector<Unsampled> Recorder::add_unsampled(std::uint64_t now_ns) {
    std::vector<Unsampled> reports = events_->take_unsampled(now_ns);
    for (const Unsampled& report : reports) {
        if (report.missing == 0) continue;
        folder_->add_unsampled(report.event, report.pid, report.missing, now_ns);
        something_new_ = true;
    }
    return reports;
}

// Events of whole CPUs have one mode for all processes.
void Recorder::use_one_mode() {
    if (plan_.settings.unwind != "auto") return;
    folder_->change_stacks(stack_options());
    for (auto& [pid, choice] : modes_) folder_->chose_stack_mode(pid, choice = first_mode(pid));
}

void Recorder::sample_whole_cpus() {
    wire::Notice notice{
        "short-lived-threads",
        fmt::format("{}% of {} is in threads that exit before their next sample.", unsampled_policy_.missing_percent(),
                    choice_.events[unsampled_policy_.event()].name),
        ""};
    const bool by_frequency = choice_.period == 0 && std::ranges::all_of(choice_.events, [](const EventSpec& spec) {
                                  return spec.period == 0 && spec.filter.empty();
                              });
    const CopyBudget before = copy_budget_;
    prefer_whole_cpus_ = true;
    reset_copy_budget(choice_);
    if (!by_frequency) {
        notice.remedy = "record this event alone";
    } else if (plan_.settings.unwind == "dwarf" && !copy_budget_.covers_all_samples()) {
        notice.remedy = "--unwind auto, or a lower --frequency";
    } else if (auto set = open_replacement(choice_); set && (*set)->samples_whole_cpus()) {
        if (put_in_place(std::move(*set), choice_)) {
            use_one_mode();
            notice.text += " From now on, whole CPUs are sampled.";
            return say({std::move(notice)});
        }
    } else {
        notice.remedy = "run the agent as root, or setcap cap_perfmon,cap_sys_ptrace+ep flamewire-agent";
    }
    prefer_whole_cpus_ = false;
    whole_cpus_refused_ = true;
    copy_budget_ = before;
    say({std::move(notice)});
}

}  // namespace flamewire::agent
