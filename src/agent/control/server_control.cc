// The actions of commands. All except the four slow ones run on the agent's thread.
#include "agent/control/server_control.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "agent/control/describe_events.h"
#include "agent/control/doctor.h"
#include "agent/control/list_events.h"
#include "agent/control/recording_log.h"
#include "agent/log.h"
#include "agent/recording/reconfiguration.h"
#include "agent/recording/targets.h"

namespace flamewire::agent {

namespace {

constexpr std::chrono::milliseconds cpu_interval{500};
constexpr std::size_t max_listed_processes = 200;

bool has_breakpoint(const std::vector<EventSpec>& events) {
    return std::ranges::any_of(events, [](const EventSpec& spec) { return is_breakpoint(spec); });
}
bool is_kernel_probe(const EventSpec& spec) { return spec.probe && spec.probe->in_kernel(); }

}  // namespace

std::optional<Error> ServerControl::problem_for_server(const std::vector<std::uint32_t>& pids) const {
    if (auto problem = problem_of(pids)) return problem;
    for (const std::uint32_t pid : pids)
        if (auto refused = recordings_.allowed().refusal(pid)) return refused;
    return std::nullopt;
}

Result<RecordingTarget> ServerControl::wide_for_server(const WideTarget& wide) const {
    if (!options_.allowed.all())
        return fail(ErrorCode::permission,
                    "this agent lets servers profile only some processes (--allow-pid, --allow-user, --allow-command), "
                    "not the whole system or control groups");
    return find_wide(wide);
}

Result<bool> ServerControl::check_allowed(bool probes_kernel, bool breakpoints) const {
    if (probes_kernel && !options_.allow_kprobes)
        return fail(ErrorCode::permission,
                    "this agent does not let servers probe the kernel; start it with --allow-kprobes");
    if (breakpoints && !options_.allow_breakpoints)
        return fail(ErrorCode::permission,
                    "this agent does not let servers set breakpoints; start it with --allow-breakpoints");
    return true;
}

Result<RequestedEvents> ServerControl::requested(const Settings& settings) const {
    RequestedEvents wanted = TRY(parse_requested(settings, recordings_.sysfs()));
    wanted.by_server = true;
    // The agent's own lists may contain any.
    const Settings& own = options_.settings;
    const bool own_events = settings.events == own.events;
    const bool probes_kernel =
        (!own_events && std::ranges::any_of(wanted.events, is_kernel_probe)) ||
        (settings.stat != own.stat && std::ranges::any_of(wanted.counters, is_kernel_probe, &RequestedCounter::spec));
    (void)TRY(check_allowed(probes_kernel, !own_events && has_breakpoint(wanted.events)));
    return wanted;
}

StatusReport ServerControl::status() {
    StatusReport report;
    report.settings = recordings_.settings();
    report.waiting_for = recordings_.waiting_for();
    if (const std::shared_ptr<Recorder> last = recordings_.recorder()) {
        report.accounting = last->accounting();
        if (!last->ended()) {
            report.state = last->paused() ? State::paused : State::profiling;
            report.running = last->running();
        }
    }
    if (Link* const link = link_) {
        const Link::Status now = link->status();
        report.link = now.connected ? now.peer : std::string();
        report.spool_bytes = now.spool_bytes;
    }
    return report;
}

Result<Running> ServerControl::start(const StartRequest& request) {
    check_recording_();  // a recording that has just ended must not prevent this one
    auto followed_before = recordings_.follow(std::nullopt);
    auto started = start_requested(request);
    if (!started) (void)recordings_.follow(std::move(followed_before));
    return started;
}

Result<Running> ServerControl::start_requested(const StartRequest& request) {
    const Settings settings = changed(recordings_.settings(), request.change);
    if (request.wide.given()) {
        RecordingTarget target = TRY(wide_for_server(request.wide));
        RequestedEvents wanted = TRY(requested(settings));
        return recordings_.record(std::move(target), settings, std::move(wanted));
    }
    std::vector<std::uint32_t> pids = request.pids;
    if (pids.empty()) {
        FollowedName followed{NamedProcesses({request.name}), true};
        pids = followed.processes.scan();
        (void)recordings_.follow(std::move(followed));
        if (pids.empty()) return fail(ErrorCode::not_found, fmt::format("no process named {}", request.name));
        // Select the allowed processes. If none is allowed, problem_for_server() reports why.
        if (std::vector<std::uint32_t> own = recordings_.allowed().among(pids); !own.empty()) pids = std::move(own);
        if (pids.size() > limits::max_pids) pids.resize(limits::max_pids);
    }
    if (auto problem = problem_for_server(pids)) return std::unexpected(*std::move(problem));
    RequestedEvents wanted = TRY(requested(settings));
    return recordings_.record(describe_target(pids), settings, std::move(wanted));
}

Result<Running> ServerControl::stop() {
    const std::shared_ptr<Recorder> current = recordings_.current();
    if (!current) return fail(ErrorCode::busy, "not profiling");
    recordings_.end("stopped", 0);
    return current->running();
}

Result<Running> ServerControl::pause() {
    const std::shared_ptr<Recorder> current = recordings_.current();
    if (!current) return fail(ErrorCode::busy, "not profiling");
    if (current->paused()) return fail(ErrorCode::busy, "already paused");
    (void)TRY(current->execute(Pause{}));
    log_line("paused");
    return current->running();
}

Result<Running> ServerControl::resume() {
    const std::shared_ptr<Recorder> current = recordings_.current();
    if (!current || !current->paused()) return fail(ErrorCode::busy, "not paused");
    (void)TRY(current->execute(Resume{}));
    log_line("resumed");
    return current->running();
}

Result<std::optional<Running>> ServerControl::configure(const SettingsChange& change) {
    const std::shared_ptr<Recorder> current = recordings_.current();
    std::optional<RecordingTarget> target;
    if (!change.pids.empty() || change.wide.given()) {
        if (!current) return fail(ErrorCode::busy, "not profiling: choose the process with start");
        if (recordings_.command() != nullptr)
            return fail(ErrorCode::unsupported,
                        "this agent records the command that it launched, and ends with it: run another agent for "
                        "another process");
        const Running running = current->running();
        if (change.wide.given()) {
            RecordingTarget wide = TRY(wide_for_server(change.wide));
            wide.scope.mode = running.scope.mode;
            if (wide.scope != running.scope) target = std::move(wide);
        } else {
            if (auto problem = problem_for_server(change.pids)) return std::unexpected(*std::move(problem));
            if (change.pids != running.pids) target = describe_target(change.pids);
        }
    }
    Settings settings = changed(current ? current->running().settings : recordings_.settings(), change);
    RequestedEvents wanted = TRY(requested(settings));
    if (!current) {
        recordings_.set_next(std::move(settings), std::move(wanted));
        return std::optional<Running>{};
    }
    const bool other_target = target.has_value();
    const Running before = current->running();
    RecordingPlan plan;
    plan.pids = target ? target->pids : before.pids;
    plan.scope = target ? target->scope : before.scope;
    plan.settings = settings;
    plan.wanted = std::move(wanted);
    // The recording keeps its events and counters if they do not change.
    const bool same_events = !target && !needs_other_events(before.settings, settings);
    if (same_events) plan.wanted.events.clear();
    if (!target && !needs_other_counters(before.settings, settings)) plan.wanted.counters.clear();
    if (!same_events || !plan.wanted.counters.empty()) (void)TRY(recordings_.prepare_probes(plan));
    (void)TRY(current->execute(std::make_shared<const Change>(
        std::move(settings), std::move(plan.wanted), read_capabilities(recordings_.sysfs()), std::move(target))));
    if (other_target) recordings_.follow_nothing();
    const Running running = current->running();
    log_change(running);
    return std::optional<Running>(running);
}

Result<Running> ServerControl::count_by(CountBy by) {
    const std::shared_ptr<Recorder> current = recordings_.current();
    if (!current) return fail(ErrorCode::busy, "not profiling");
    (void)TRY(current->execute(SetCountBy{by}));
    return current->running();
}

Result<bool> ServerControl::resolve_kernel() {
    const std::shared_ptr<Recorder> current = recordings_.current();
    if (!current) return fail(ErrorCode::busy, "not profiling");
    (void)current->execute(ResolveKernel{});
    return true;
}

HealthSettings ServerControl::configure_metrics(const HealthChange& change) {
    const HealthSettings before = health_->settings();
    const HealthSettings now = changed(before, change);
    if (now != before) health_->change(now);
    return now;
}

std::vector<ProcessEntry> ServerControl::list_processes() {
    std::vector<ProcessEntry> processes =
        agent::list_processes(cpu_interval, options_.allowed.all() ? max_listed_processes : SIZE_MAX);
    std::erase_if(processes,
                  [&](const ProcessEntry& process) { return recordings_.allowed().refusal(process.pid).has_value(); });
    if (processes.size() > max_listed_processes) processes.resize(max_listed_processes);
    return processes;
}

ProcessCheck ServerControl::verify_pid(std::uint32_t pid) {
    ProcessCheck check;
    auto identity = identify_process(pid);
    if (!identity) return check;
    check.exists = true;
    check.identity = *std::move(identity);
    check.refused = problem_for_server({pid});
    if (check.refused) {
        if (recordings_.allowed().refusal(pid)) check.identity = {};
        return check;
    }
    // The only reliable check is to open the events that `start` would open.
    const Capabilities known = read_capabilities(recordings_.sysfs());
    const Settings settings = recordings_.settings();
    const auto try_open = [&]() -> Result<bool> {
        RequestedEvents wanted = TRY(requested(settings));
        EventSetOptions options;
        // Probes need no more permission than other tracepoints, and creating them takes long. Breakpoints on symbols
        // are not placed yet.
        std::erase_if(wanted.events, [](const EventSpec& spec) { return spec.probe || spec.breakpoint; });
        options.choice = TRY(
            choose_events(std::move(wanted.events), settings.frequency_hz, settings.period, settings.kernel, known));
        options.targets = {{pid}};
        options.start_disabled = true;
        options.ring_pages = 1;
        (void)TRY(EventSet::open(options, known));
        return true;
    };
    if (auto opened = try_open(); !opened) check.refused = std::move(opened).error();
    return check;
}

Capabilities ServerControl::capabilities() { return recordings_.capabilities(); }

Result<Capabilities> ServerControl::reprobe() {
    Capabilities found = examine_machine(recordings_.sysfs());
    recordings_.set_capabilities(found);
    return found;
}

Result<EventList> ServerControl::list_events(const EventQuery& query) {
    Scope scope;
    if (query.wide.given()) scope = TRY(wide_for_server(query.wide)).scope;
    if (!query.pids.empty())
        if (auto problem = problem_for_server(query.pids)) return std::unexpected(*std::move(problem));
    const ProbeTarget target = recordings_.probe_target(query.pids, scope, true);
    EventList list;
    if (query.describe.empty()) {
        (void)TRY(check_allowed(query.kind == EventKind::kernel_function, false));
        (void)TRY(agent::list_events(query, target, recordings_.sysfs(), list));
    } else {
        const std::vector<EventSpec> events = TRY(parse_events(query.describe, recordings_.sysfs()));
        (void)TRY(check_allowed(std::ranges::any_of(events, is_kernel_probe), has_breakpoint(events)));
        const bool in_files =
            std::ranges::any_of(events, [](const EventSpec& spec) { return spec.probe && !spec.probe->in_kernel(); });
        const ProbeCosts costs = in_files ? recordings_.probe_costs() : ProbeCosts();
        list.description = TRY(describe_events(query.describe, target, recordings_.sysfs(), &costs));
    }
    list.kernel_functions = options_.allow_kprobes;
    return list;
}

}  // namespace flamewire::agent
