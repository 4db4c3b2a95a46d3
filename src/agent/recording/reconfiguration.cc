#include "agent/recording/reconfiguration.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "agent/options.h"
#include "agent/process/process_list.h"
#include "agent/recording/targets.h"
#include "base/clock.h"

namespace flamewire::agent {

// The period of faults and probes depends on the common one.
bool needs_other_events(const Settings& from, const Settings& to) {
    return from.events != to.events || from.filter != to.filter || from.period != to.period ||
           from.frequency_given != to.frequency_given;
}

bool needs_other_counters(const Settings& from, const Settings& to) { return from.stat != to.stat; }

Reconfiguration::Targets Reconfiguration::targets() const {
    const RecordingPlan& plan = parts_.setup.plan;
    return {{plan.target, plan.pids, plan.scope}, plan.follows_name, parts_.members.state(), parts_.stacks.state()};
}

void Reconfiguration::restore(Targets before) {
    RecordingPlan& plan = parts_.setup.plan;
    plan.target = std::move(before.target.name);
    plan.pids = std::move(before.target.pids);
    plan.scope = std::move(before.target.scope);
    plan.follows_name = before.follows_name;
    parts_.members.restore(std::move(before.members));
    parts_.stacks.restore(std::move(before.stacks));
}

// Samples of processes that stay in the target are in one of the two event sets. The gap between them is reported.
Result<bool> Reconfiguration::switch_to(Settings settings, EventChoice choice,
                                        const std::optional<RecordingTarget>& target, bool same_stacks) {
    RecordingPlan& plan = parts_.setup.plan;
    const Settings old_settings = std::exchange(plan.settings, std::move(settings));
    Targets before = targets();
    const bool was_wide = plan.scope.wide;
    if (target) {
        plan.target = target->name;
        plan.pids = target->pids;
        plan.scope = target->scope;
        plan.follows_name = false;
        parts_.members.assign({target->pids.begin(), target->pids.end()});
    }
    const bool used_one_mode = parts_.stacks.prefers_whole_cpus();
    parts_.stacks.prefer_whole_cpus(false);
    adaptation_.allow_whole_cpus();
    const bool new_modes = !same_stacks || target || used_one_mode;
    if (new_modes) parts_.stacks.choose_first_modes();
    parts_.stacks.reset_copies(choice);
    if (auto switched = parts_.events.switch_to(std::move(choice)); !switched) {
        plan.settings = old_settings;
        restore(std::move(before));
        return switched;
    }
    // Events of processes outside the previous target were not recorded, so cached data of them may be outdated.
    if (target && plan.scope.wide && !was_wide) parts_.processes.distrust_all();
    if (target)
        for (const std::uint32_t pid : plan.pids) parts_.processes.attach(pid);
    if (target && plan.scope.wide) parts_.processes.note_living();
    if (!same_stacks || used_one_mode || (target && plan.scope.wide != was_wide))
        parts_.folder.change_stacks(parts_.stacks.unwinding());
    if (new_modes)
        for (const auto& [pid, mode] : parts_.stacks.modes()) parts_.folder.chose_stack_mode(pid, mode);
    return true;
}

Result<bool> Reconfiguration::change(const Change& change) {
    RecordingPlan& plan = parts_.setup.plan;
    const Settings old = plan.settings;
    Settings settings = change.settings;
    const std::optional<RecordingTarget>& target = change.target;
    const bool same_stacks =
        settings.unwind == old.unwind && settings.stack_bytes == old.stack_bytes && settings.max_depth == old.max_depth;
    const bool same_events = settings.events == old.events && settings.filter == old.filter &&
                             settings.trace_first == old.trace_first && settings.frequency_hz == old.frequency_hz &&
                             settings.period == old.period && settings.kernel == old.kernel;
    const bool switches = !same_events || !same_stacks || target;
    RequestedEvents wanted = change.wanted;
    if (!target && !needs_other_events(old, settings)) {
        wanted.events = plan.wanted.events;
        wanted.event_probes = plan.wanted.event_probes;
    }
    if (!target && !needs_other_counters(old, settings)) {
        wanted.counters = plan.wanted.counters;
        wanted.counter_probes = plan.wanted.counter_probes;
    }
    if (switches) {
        EventChoice choice = TRY(choose_events(wanted.events, settings.frequency_hz, settings.period, settings.kernel,
                                               change.capabilities, *parts_.setup.environment.kernel));
        parts_.setup.capabilities = change.capabilities;
        parts_.off_cpu.find_io_functions(choice);
        (void)TRY(switch_to(settings, std::move(choice), target, same_stacks));
    }
    Result<bool> counted = true;
    const bool recounts = settings.stat != old.stat || settings.kernel != old.kernel || target;
    if (recounts) counted = parts_.counters.replace(settings, wanted, change.capabilities, !parts_.events.sampling());
    const bool recounted = recounts && counted;
    if (!counted && target) {
        // The new target is already sampled, so a failure to open counters does not undo the change.
        parts_.counters.report(counted.error());
        counted = true;
    }
    if (!counted) settings.stat = old.stat;
    plan.settings = std::move(settings);
    // The probes of what was replaced are removed now, after their events were closed.
    if (switches) {
        plan.wanted.events = std::move(wanted.events);
        plan.wanted.event_probes = std::move(wanted.event_probes);
    }
    if (recounted) {
        plan.wanted.counters = std::move(wanted.counters);
        plan.wanted.counter_probes = std::move(wanted.counter_probes);
    }
    producer_.change_interval();
    if (switches) {
        parts_.off_cpu.start(parts_.description.update(parts_.events.switched_ns(), parts_.events.gap_ns()));
        if (target) parts_.folder.off_cpu().forget();
        parts_.off_cpu.scan_threads(monotonic_ns());
        parts_.batch.add_notices(parts_.setup.choice.notices);
        if (target || needs_other_events(old, plan.settings))
            parts_.batch.add_notices(thinning_notices(plan.wanted.events));
    }
    publish();
    return counted;
}

// The recording has at most limits::max_pids named processes.
void Reconfiguration::limit_to_room(std::vector<std::uint32_t>& pids) {
    const std::size_t room = limits::max_pids - std::min(limits::max_pids, parts_.setup.plan.pids.size());
    if (pids.size() <= room) return;
    pids.resize(room);
    if (std::exchange(limit_notified_, true)) return;
    parts_.batch.add_notice(
        "processes-limit",
        fmt::format("More than {} processes have this name; the others are not recorded.", limits::max_pids),
        "--all records every process");
}

// The named processes that live, and those that have exited but have children.
std::vector<std::uint32_t> Reconfiguration::processes_with_breakpoints() const {
    std::vector<std::uint32_t> pids;
    for (const std::uint32_t pid : parts_.members.living()) pids.push_back(parts_.members.origin_of(pid));
    return pids;
}

// A pid may be that of an earlier process, which had other addresses.
void Reconfiguration::add_parts(std::vector<EventSpec>& events, const std::vector<std::uint32_t>& kept,
                                const std::vector<std::uint32_t>& fresh) const {
    const auto is_fresh = [&](std::uint32_t pid) { return std::ranges::find(fresh, pid) != fresh.end(); };
    std::vector<std::uint32_t> others = kept;
    std::erase_if(others, is_fresh);
    for (EventSpec& spec : events) {
        const auto next = std::ranges::find(next_breakpoints_, spec.name, &EventSpec::name);
        std::vector<EventPart> parts;
        if (next != next_breakpoints_.end())
            std::ranges::copy_if(next->parts, std::back_inserter(parts),
                                 [&](const EventPart& part) { return is_fresh(process_of(part)); });
        replace_processes(spec, others, parts);
    }
}

Result<bool> Reconfiguration::add_processes(const AddProcesses& added) {
    RecordingPlan& plan = parts_.setup.plan;
    std::vector<std::uint32_t> fresh = added.pids;
    std::erase_if(fresh, [&](std::uint32_t pid) { return parts_.members.pids().contains(pid); });
    if (fresh.empty()) return false;
    Targets before = targets();
    std::erase_if(plan.pids, [](std::uint32_t pid) { return !identify_process(pid); });
    limit_to_room(fresh);
    if (fresh.empty()) return false;
    const std::vector<std::uint32_t> kept = processes_with_breakpoints();
    EventChoice choice = parts_.setup.choice;
    add_parts(choice.events, kept, fresh);
    plan.pids.insert(plan.pids.end(), fresh.begin(), fresh.end());
    plan.target = describe_target(plan.pids).name;
    parts_.members.insert(fresh);
    for (const std::uint32_t pid : fresh) parts_.stacks.set_mode(pid, parts_.stacks.first_mode(pid));
    if (auto switched = parts_.events.switch_to(std::move(choice)); !switched) {
        restore(std::move(before));
        return switched;
    }
    add_parts(plan.wanted.events, kept, fresh);
    parts_.stacks.forget_others(parts_.members);
    for (const std::uint32_t pid : fresh) {
        parts_.processes.attach(pid);
        parts_.folder.chose_stack_mode(pid, parts_.stacks.mode(pid));
    }
    if (auto counted =
            parts_.counters.replace(plan.settings, plan.wanted, parts_.setup.capabilities, !parts_.events.sampling());
        !counted)
        parts_.counters.report(counted.error());
    (void)parts_.description.update(parts_.events.switched_ns(), parts_.events.gap_ns());
    parts_.off_cpu.scan_threads(monotonic_ns());
    publish();
    return true;
}

Result<bool> Reconfiguration::add_breakpoints(const AddBreakpoints& added) {
    next_breakpoints_ = added.events;
    return true;
}

void Reconfiguration::publish() {
    parts_.snapshot.set_running(parts_.description.running(&parts_.counters.counting()));
}

}  // namespace flamewire::agent
