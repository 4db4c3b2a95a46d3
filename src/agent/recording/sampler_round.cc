// One round of the sampler: passes records to the folder and batches to the sink, and keeps the sample accounting.
#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <variant>

#include "agent/log.h"
#include "agent/options.h"
#include "agent/process/proc_text.h"
#include "agent/recording/sampler.h"
#include "agent/recording/targets.h"
#include "base/clock.h"
#include "base/system.h"

namespace flamewire::agent {

namespace {

// Interval of batches while nothing happens on the target, as a sign of life for the server.
constexpr std::uint64_t heartbeat_ns = 1'000'000'000;
constexpr std::uint64_t ns_per_ms = 1'000'000;
std::uint64_t time_of(const Record& record) {
    return std::visit([](const auto& one) { return one.time_ns; }, record);
}

}  // namespace

void Sampler::on_record(const Record& record) {
    batch_.mark();
    if (const auto* sample = std::get_if<SampleRecord>(&record)) {
        batch_.add_sample();
        const std::uint32_t event = events_.current().event_of(sample->id);
        stacks_.copies().add_sample(setup_.choice.events[event].off_cpu != 0, sample->stack.size(), sample->stack_cut);
        if (sample->woken_tid != 0) return folder_.add_waking(*sample, events_.sampling());
        if (!setup_.plan.scope.cgroups.empty()) members_.saw_sample(sample->pid);
        if (setup_.choice.events[event].period != 0) fault_throttle_.add_sample();
        folder_.add_sample(*sample, event);
        return;
    }
    if (const auto* throttle = std::get_if<ThrottleRecord>(&record)) {
        if (!throttle->unthrottle)
            folder_.add_loss({wire::LossReason::throttled, 1, throttle->time_ns, throttle->time_ns,
                              events_.current().event_of(throttle->id) + 1, 0});
        return;
    }
    if (std::holds_alternative<SwitchRecord>(record)) return off_cpu_.track(record);
    if (const auto* symbol = std::get_if<KsymbolRecord>(&record)) return folder_.follow_program(*symbol);
    // The event set counts the lost samples. The process table needs the record to distrust its mappings.
    const auto* lost_some = std::get_if<LostRecord>(&record);
    const bool lost = lost_some != nullptr;
    // The event that wrote the record is usually the one whose samples were lost.
    if (lost && !lost_some->sideband && !setup_.choice.events.empty() &&
        setup_.choice.events[events_.current().event_of(lost_some->id)].period != 0)
        fault_throttle_.add_lost(lost_some->count);
    if (lost && !lost_some->sideband) {
        stacks_.copies().add_lost(lost_some->count);
        priority_boost_.begin();
    }
    if (!lost && time_of(record) < events_.sideband_from_ns()) return;
    std::uint32_t pid = 0;
    if (const auto* comm = std::get_if<CommRecord>(&record)) pid = comm->pid;
    if (const auto* task = std::get_if<TaskRecord>(&record)) pid = task->pid;
    const bool shown = members_.include(pid);  // before follow() handles its exit
    if (const auto* task = std::get_if<TaskRecord>(&record)) {
        members_.follow(*task);
        counters_.counting().on_task(*task);
    }
    if (const auto event = processes_.on_record(record); event && shown) folder_.add_lifecycle(*event);
    // The agent does not sample its own threads, so their switches out would be missing.
    const bool own = pid == System::current().constant(Constant::own_pid);
    if (folder_.tracks_off_cpu() && (lost || shown) && !own) off_cpu_.track(record);
}

Sampler::Targets Sampler::targets() const {
    return {{setup_.plan.target, setup_.plan.pids, setup_.plan.scope},
            setup_.plan.follows_name,
            members_.pids(),
            stacks_.state()};
}

void Sampler::restore(Targets before) {
    setup_.plan.target = std::move(before.target.name);
    setup_.plan.pids = std::move(before.target.pids);
    setup_.plan.scope = std::move(before.target.scope);
    setup_.plan.follows_name = before.follows_name;
    members_.assign(std::move(before.members));
    stacks_.restore(std::move(before.stacks));
}

// Samples of processes that stay in the target are in one of the two event sets. The gap between them is reported.
Result<bool> Sampler::switch_to(Settings settings, EventChoice choice, const std::optional<RecordingTarget>& target,
                                bool same_stacks) {
    const Settings old_settings = std::exchange(setup_.plan.settings, std::move(settings));
    Targets before = targets();
    const bool was_wide = setup_.plan.scope.wide;
    if (target) {
        setup_.plan.target = target->name;
        setup_.plan.pids = target->pids;
        setup_.plan.scope = target->scope;
        setup_.plan.follows_name = false;
        members_.assign({target->pids.begin(), target->pids.end()});
    }
    const bool used_one_mode = stacks_.prefers_whole_cpus();
    stacks_.prefer_whole_cpus(false);
    whole_cpus_refused_ = false;
    const bool new_modes = !same_stacks || target || used_one_mode;
    if (new_modes) stacks_.choose_first_modes();
    stacks_.reset_copies(choice);
    if (auto switched = events_.switch_to(std::move(choice)); !switched) {
        setup_.plan.settings = old_settings;
        restore(std::move(before));
        return switched;
    }
    // Events of processes outside the previous target were not recorded, so cached data of them may be outdated.
    if (target && setup_.plan.scope.wide && !was_wide) processes_.distrust_all();
    if (target)
        for (const std::uint32_t pid : setup_.plan.pids) processes_.attach(pid);
    if (target && setup_.plan.scope.wide) processes_.note_living();
    if (!same_stacks || used_one_mode || (target && setup_.plan.scope.wide != was_wide))
        folder_.change_stacks(stacks_.unwinding());
    if (new_modes)
        for (const auto& [pid, mode] : stacks_.modes()) folder_.chose_stack_mode(pid, mode);
    return true;
}

Result<bool> Sampler::change(const Change& change) {
    const Settings old = setup_.plan.settings;
    Settings settings = change.settings;
    const std::optional<RecordingTarget>& target = change.target;
    const bool same_stacks =
        settings.unwind == old.unwind && settings.stack_bytes == old.stack_bytes && settings.max_depth == old.max_depth;
    const bool same_events = settings.events == old.events && settings.filter == old.filter &&
                             settings.frequency_hz == old.frequency_hz && settings.period == old.period &&
                             settings.kernel == old.kernel;
    const bool switches = !same_events || !same_stacks || target;
    if (switches) {
        EventChoice choice = TRY(choose_events(change.wanted.events, settings.frequency_hz, settings.period,
                                               settings.kernel, change.capabilities, *setup_.environment.kernel));
        setup_.capabilities = change.capabilities;
        off_cpu_.find_io_functions(choice);
        (void)TRY(switch_to(settings, std::move(choice), target, same_stacks));
    }
    Result<bool> counted = true;
    if (settings.stat != old.stat || settings.kernel != old.kernel || target)
        counted = counters_.replace(settings, change.wanted, change.capabilities, !events_.sampling());
    if (!counted && target) {
        // The new target is already sampled, so a failure to open counters does not undo the change.
        counters_.report(counted.error());
        counted = true;
    }
    if (!counted) settings.stat = old.stat;
    setup_.plan.settings = std::move(settings);
    setup_.plan.wanted = change.wanted;
    next_flush_ns_ = std::min(next_flush_ns_, monotonic_ns() + setup_.plan.settings.interval_ms * ns_per_ms);
    if (switches) {
        off_cpu_.start(description_.update(events_.switched_ns(), events_.gap_ns()));
        if (target) folder_.off_cpu().forget();
        off_cpu_.scan_threads(monotonic_ns());
        batch_.add_notices(setup_.choice.notices);
    }
    publish_running();
    return counted;
}

Result<bool> Sampler::add_processes(const AddProcesses& added) {
    std::vector<std::uint32_t> fresh = added.pids;
    std::erase_if(fresh, [&](std::uint32_t pid) { return members_.pids().contains(pid); });
    if (fresh.empty()) return false;
    Targets before = targets();
    std::erase_if(setup_.plan.pids, [](std::uint32_t pid) { return !identify_process(pid); });
    if (const std::size_t room = limits::max_pids - std::min(limits::max_pids, setup_.plan.pids.size());
        fresh.size() > room) {
        if (!std::exchange(processes_limit_notified_, true))
            batch_.add_notice(
                "processes-limit",
                fmt::format("More than {} processes have this name; the others are not recorded.", limits::max_pids),
                "--all records every process");
        fresh.resize(room);
        if (fresh.empty()) return false;
    }
    setup_.plan.pids.insert(setup_.plan.pids.end(), fresh.begin(), fresh.end());
    setup_.plan.target = describe_target(setup_.plan.pids).name;
    members_.insert(fresh);
    for (const std::uint32_t pid : fresh) stacks_.set_mode(pid, stacks_.first_mode(pid));
    if (auto switched = events_.switch_to(setup_.choice); !switched) {
        restore(std::move(before));
        return switched;
    }
    stacks_.forget_others(members_);
    for (const std::uint32_t pid : fresh) {
        processes_.attach(pid);
        folder_.chose_stack_mode(pid, stacks_.mode(pid));
    }
    if (auto counted =
            counters_.replace(setup_.plan.settings, setup_.plan.wanted, setup_.capabilities, !events_.sampling());
        !counted)
        counters_.report(counted.error());
    (void)description_.update(events_.switched_ns(), events_.gap_ns());
    off_cpu_.scan_threads(monotonic_ns());
    publish_running();
    return true;
}

void Sampler::flush() {
    const std::uint64_t now = monotonic_ns();
    next_flush_ns_ = now + setup_.plan.settings.interval_ms * ns_per_ms;
    kernel_names_.begin_if_due(now);
    gather(now);
    if (mailbox_.take_epoch()) {
        (void)System::current().input(inputs::epoch, "begun");
        folder_.begin_epoch();
    }
    const bool room = outbox_.push();
    const bool too_many = batch_.full();
    const bool due = batch_.has_content() || now - last_flush_ns_ >= heartbeat_ns;
    if ((room && due) || too_many) {
        std::unique_ptr<ClosedBatch> next(new ClosedBatch{folder_.close_batch(), folder_.periods()});
        batch_.begin();
        next->batch.agent = own_cost();
        if (!room) {
            // The link has not accepted anything for half a million samples. Drop the rows, but keep the tables, which
            // later batches need.
            const std::uint64_t given_up = next->samples();
            next->batch.rows.clear();
            next->batch.losses.push_back({wire::LossReason::queue_full, given_up, last_flush_ns_, now, 0, 0});
            snapshot_.add_dropped(given_up);
        }
        last_flush_ns_ = now;
        outbox_.add(std::move(next));
        (void)outbox_.push();
    }
    adapt_stack_modes(now);
    adapt_stack_copies(now);
    publish();
}

void Sampler::gather(std::uint64_t now_ns) {
    counts_ = events_.counts();
    if (counts_.samples_lost > lost_reported_) {
        folder_.samples_lost();
        batch_.add_loss(
            {wire::LossReason::ring_full, counts_.samples_lost - lost_reported_, last_flush_ns_, now_ns, 0, 0});
        lost_reported_ = counts_.samples_lost;
    }
    for (const wire::Loss& loss : processes_.take_losses()) batch_.add_loss(loss);
    batch_.add_symbols(processes_.take_jit_symbols());
    if (const std::uint32_t pid = folder_.process_of_costly_tables();
        pid != 0 && !std::exchange(costly_tables_notified_, true))
        batch_.add_notice(
            "costly-tables",
            fmt::format("The unwind tables of process {} take too long to read: some of its stacks end early.", pid),
            "--unwind fp reads none");
    batch_.add_notices(events_.current().take_notices());
    batch_.add_notices(processes_.take_notices());
    batch_.add_notices(counters_.counting().take_notices());
}

wire::AgentStats Sampler::own_cost() const {
    const BatchSink::Backlog backlog = outbox_.backlog();
    wire::AgentStats stats;
    stats.cpu_ns = process_cpu_ns();
    const std::string resident = System::current().input(inputs::resident_bytes, std::to_string(memory_.bytes()));
    std::string_view resident_digits = resident;
    stats.rss_bytes = take_number(resident_digits, 10).value_or(0);
    stats.ring_bytes = counts_.ring_bytes;
    stats.samples_read = counts_.samples_read;
    stats.samples_duplicate = counts_.samples_duplicate;
    stats.samples_lost = counts_.samples_lost;
    stats.late_records = static_cast<std::uint32_t>(std::min<std::uint64_t>(counts_.late_records, UINT32_MAX));
    stats.queue_batches = backlog.queue_batches;
    stats.spool_bytes = backlog.spool_bytes;
    return stats;
}

void Sampler::publish() { snapshot_.update(counts_, lost_reported_, counters_.counting(), members_.pids(), folder_); }

}  // namespace flamewire::agent
