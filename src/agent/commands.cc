// One function per command.
#include "agent/commands.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "agent/command_arguments.h"
#include "agent/hello.h"
#include "agent/list_events_command.h"
#include "agent/option_values.h"
#include "agent/reply.h"
#include "base/hex.h"
#include "base/json_writer.h"

namespace flamewire::agent {

namespace {

std::unexpected<Error> refuse(std::string sentence) { return fail(ErrorCode::invalid, std::move(sentence)); }

constexpr const char* wide_excludes = "all, cpus, cgroups and container exclude pid and name";

// Only the agent's own options can set these words. A server may send the current value back, as the page's dialogs do.
void check_config_words(Arguments& args, const char* name, const std::optional<std::string>& events,
                        std::string_view now) {
    if (events && *events != now && sets_config_words(*events))
        args.refuse(
            fmt::format("{}: only the agent's own options take config=; name the fields of the PMU, "
                        "as in cpu/event=0x3c,umask=0x1/",
                        name));
}

// Also fails for the arguments that were read before.
Result<SettingsChange> read_change(Arguments& args, Control& control) {
    const Capabilities capabilities = control.capabilities();
    const Settings now = control.status().settings;
    SettingsChange change;
    change.frequency_hz = args.number32("frequency", 1, limits::max_frequency_hz);
    change.period = args.number("count", 1, limits::max_period);
    if (change.frequency_hz && change.period) args.refuse("frequency and count exclude each other");
    change.duration_s = args.number32("duration", 1, limits::max_duration_s);
    change.interval_ms = args.number32("interval", limits::min_interval_ms, limits::max_interval_ms);
    change.events = args.events("events");
    check_config_words(args, "events", change.events, now.events);
    change.filter = args.text("filter");
    change.trace_first = args.number("trace_first", 0, limits::max_traced);
    change.stat = args.events("stat");
    check_config_words(args, "stat", change.stat, now.stat);
    change.kernel = args.flag("kernel");
    change.unwind = args.text("unwind");
    if (!change.unwind) change.unwind = args.text("callgraph");
    if (change.unwind && change.unwind->empty()) change.unwind.reset();
    if (change.unwind) {
        auto possible = check_unwind(*change.unwind);
        if (possible) possible = check_unwind_here(*change.unwind, capabilities);
        if (!possible) args.refuse(std::move(possible).error());
    }
    if (const auto size = args.number("stack_size", limits::min_stack_bytes, limits::max_stack_bytes))
        change.stack_bytes = whole_words(*size);
    change.max_depth = args.number32("max_depth", limits::min_depth, limits::max_depth);
    (void)TRY(args.check());
    return change;
}

void put_notices(JsonWriter& reply, const std::vector<wire::Notice>& notices) {
    reply.array("notices");
    for (const wire::Notice& notice : notices)
        reply.object()
            .member("code", notice.code)
            .member("text", notice.text)
            .member("remedy", notice.remedy)
            .end_object();
    reply.end_array();
}

void put_settings(JsonWriter& reply, const Settings& settings) {
    reply.member("frequency", settings.period != 0 ? 0 : settings.frequency_hz)
        .member("count", settings.period)
        .member("duration", settings.duration_s)
        .member("interval", settings.interval_ms)
        .member("callgraph", settings.unwind)
        .member("unwind", settings.unwind)
        .member("stack_size", settings.stack_bytes)
        .member("max_depth", settings.max_depth)
        .member("unwind_memory", settings.unwind_memory_bytes)
        .member("filter", settings.filter)
        .member("trace_first", settings.trace_first)
        .member("event_list", settings.events)
        .member("stat", settings.stat)
        .member("mode", "continuous");
}

// The settings of the next start.
void put_idle_settings(JsonWriter& reply, const Settings& settings) {
    put_settings(reply, settings);
    reply.member("kernel", settings.kernel);
}

constexpr std::array<std::string_view, 3> count_by_names{"none", "thread", "cpu"};  // in the order of CountBy

void put_counters(JsonWriter& reply, const Running& running) {
    reply.array("counters");
    for (const CounterState& counter : running.counters) {
        auto& entry = reply.object().member("name", counter.name).member("status", name_of(counter.status));
        if (!counter.part.empty()) entry.member("part", counter.part);
        entry.end_object();
    }
    reply.end_array().member("counters_by", count_by_names[static_cast<std::size_t>(running.count_by)]);
}

void put_running(JsonWriter& reply, const Running& running) {
    reply.member("pid", running.pids.empty() ? 0 : running.pids.front()).numbers("pids", running.pids);
    reply.member("all", running.scope.wide && running.scope.cgroups.empty())
        .numbers("cpus", running.scope.cpus)
        .texts("cgroups", running.scope.cgroups);
    reply.member("target", running.target).member("recording", to_hex(std::as_bytes(std::span(running.recording_id))));
    put_settings(reply, running.settings);
    reply.member("effective_frequency", running.effective_frequency_hz)
        .texts("events", running.events)
        .member("kernel", running.kernel);
    put_counters(reply, running);
    put_notices(reply, running.notices);
}

void put_unwinds(JsonWriter& reply, const std::vector<UnwindState>& processes) {
    reply.array("unwind_processes");
    for (const UnwindState& process : processes)
        reply.object()
            .member("pid", process.pid)
            .member("comm", process.comm)
            .member("mode", name_of(process.mode))
            .member("why", process.why)
            .member("samples", process.samples)
            .member("whole", process.whole)
            .member("joined", process.joined)
            .member("truncated", process.truncated)
            .member("open_end", process.open_end)
            .member("stopped", process.stopped)
            .member("frames", process.frames)
            .member("stack_bytes", process.stack_bytes)
            .end_object();
    reply.end_array();
}

Result<std::string> status(const wire::Command& command, const Machine& machine, Control& control) {
    const StatusReport report = control.status();
    const Capabilities capabilities = control.capabilities();
    Reply reply(command);
    reply.member("state", state_name(report.state));
    if (report.running) {
        put_running(reply, *report.running);
        put_unwinds(reply, report.running->unwind_processes);
    } else {
        reply.member("pid", nullptr);
        put_idle_settings(reply, report.settings);
        reply.texts("events", capabilities.sampling_events);
    }
    if (!report.waiting_for.empty()) reply.member("waiting_for", report.waiting_for);
    reply.member("agent_version", FLAMEWIRE_VERSION);
    put_platform(reply, machine, capabilities);
    reply.object("capabilities");
    put_capabilities(reply, capabilities);
    reply.end_object();
    const Accounting& counts = report.accounting;
    reply.member("samples_read", counts.samples_read)
        .member("samples_duplicate", counts.samples_duplicate)
        .member("samples_lost", counts.samples_lost)
        .member("samples_dropped", counts.samples_dropped)
        .member("batches", counts.batches)
        .member("ring_bytes", counts.ring_bytes)
        .member("spool_bytes", report.spool_bytes)
        .member("link", report.link);
    return reply.finish();
}

Result<std::string> list_processes(const wire::Command& command, Control& control) {
    Reply reply(command);
    reply.array("processes");
    for (const ProcessEntry& process : control.list_processes()) {
        reply.object().member("pid", process.pid).member("ns_pid", process.ns_pid).member("user", process.user);
        reply.member("comm", process.comm)
            .member("cmdline", process.command_line)
            .member("cpu", Decimal{std::llround(process.cpu_percent * 10), 1});
        reply.member("container", process.container_id).end_object();
    }
    reply.end_array();
    return reply.finish();
}

Result<std::string> verify_pid(const wire::Command& command, Control& control) {
    Arguments args(command.args);
    const auto pid = args.number32("pid", 1, limits::max_pid);
    if (!pid) args.refuse("pid required");
    (void)TRY(args.check());
    const ProcessCheck check = control.verify_pid(*pid);
    Reply reply(command);
    reply.member("exists", check.exists).member("pid", *pid);
    reply.object("info")
        .member("comm", check.identity.comm)
        .member("cmdline", check.identity.command_line)
        .end_object();
    reply.member("permitted", check.exists && !check.refused);
    if (check.refused)
        reply.member("problem", check.refused->message);
    else
        reply.member("problem", nullptr);
    return reply.finish();
}

Result<std::string> reprobe(const wire::Command& command, Control& control) {
    Arguments args(command.args);
    const auto pid = args.number32("pid", 1, limits::max_pid);
    (void)TRY(args.check());
    if (control.status().state != State::idle) return refuse("cannot reprobe while profiling — stop first");
    if (pid && !control.verify_pid(*pid).exists) return refuse(fmt::format("process {} not found", *pid));
    const Capabilities capabilities = TRY(control.reprobe());
    Reply reply(command);
    put_capabilities(reply, capabilities);
    return reply.finish();
}

Result<std::string> running_reply(const wire::Command& command, Result<Running> result) {
    const Running running = TRY(std::move(result));
    Reply reply(command);
    put_running(reply, running);
    return reply.finish();
}

Result<std::string> start(const wire::Command& command, Control& control) {
    const State state = control.status().state;
    if (state == State::profiling) return refuse("already profiling");
    if (state == State::paused) return refuse("already profiling (paused — use resume or stop)");
    Arguments args(command.args);
    StartRequest request;
    request.pids = args.pids();
    request.name = args.text("name").value_or("");
    request.wide = args.wide();
    if (!request.pids.empty() && !request.name.empty()) args.refuse("pid and name exclude each other");
    const bool processes = !request.pids.empty() || !request.name.empty();
    if (request.wide.given() && processes) args.refuse(wide_excludes);
    if (!request.wide.given() && !processes) args.refuse("pid required");
    request.change = TRY(read_change(args, control));
    return running_reply(command, control.start(request));
}

Result<std::string> counters(const wire::Command& command, Control& control) {
    Arguments args(command.args);
    const std::string by = args.text("by").value_or("");
    (void)TRY(args.check());
    const auto found = std::ranges::find(count_by_names, by);
    if (found == count_by_names.end()) return refuse("by must be none, thread or cpu");
    return running_reply(command, control.count_by(static_cast<CountBy>(found - count_by_names.begin())));
}

Result<std::string> configure(const wire::Command& command, Control& control) {
    Arguments args(command.args);
    SettingsChange change = TRY(read_change(args, control));
    change.pids = args.pids();
    change.wide = args.wide();
    (void)TRY(args.check());
    if (change.wide.given() && !change.pids.empty()) return refuse(wide_excludes);
    const std::optional<Running> running = TRY(control.configure(change));
    Reply reply(command);
    if (running) {
        put_running(reply, *running);
        reply.member("applied", "now");
    } else {
        put_idle_settings(reply, control.status().settings);
        reply.member("applied", "at the next start");
    }
    return reply.finish();
}

Result<std::string> configure_metrics(const wire::Command& command, Control& control) {
    Arguments args(command.args);
    HealthChange change;
    change.enabled = args.flag("enabled");
    change.interval_s = args.number32("interval", HealthSettings::min_interval_s, HealthSettings::max_interval_s);
    change.network = args.flag("network");
    change.disk = args.flag("disk");
    change.threads = args.flag("threads");
    (void)TRY(args.check());
    const HealthSettings now = control.configure_metrics(change);
    Reply reply(command);
    reply.member("metrics_enabled", now.enabled)
        .member("interval", now.interval_s)
        .member("network", now.network)
        .member("disk", now.disk)
        .member("threads", now.threads);
    return reply.finish();
}

Result<std::string> dispatch(const wire::Command& command, const Machine& machine, Control& control) {
    if (command.name == "ping") return Reply(command).finish();
    if (command.name == "status") return status(command, machine, control);
    if (command.name == "list_processes") return list_processes(command, control);
    if (command.name == "list_events") return list_events(command, control);
    if (command.name == "verify_pid") return verify_pid(command, control);
    if (command.name == "reprobe") return reprobe(command, control);
    if (command.name == "start") return start(command, control);
    if (command.name == "stop") return running_reply(command, control.stop());
    if (command.name == "pause") return running_reply(command, control.pause());
    if (command.name == "resume") return running_reply(command, control.resume());
    if (command.name == "configure") return configure(command, control);
    if (command.name == "counters") return counters(command, control);
    if (command.name == "configure_metrics") return configure_metrics(command, control);
    if (command.name == "resolve_kernel") {
        (void)TRY(control.resolve_kernel());
        return Reply(command).finish();
    }
    return refuse(fmt::format("unknown command: {}", command.name));
}

}  // namespace

std::string_view state_name(State state) {
    constexpr std::array<std::string_view, 3> names{"idle", "profiling", "paused"};
    return names[static_cast<std::size_t>(state)];
}

Settings changed(Settings settings, const SettingsChange& change) {
    if (change.frequency_hz) {
        settings.frequency_hz = *change.frequency_hz;
        settings.period = 0;
    }
    if (change.period) settings.period = *change.period;
    if (change.duration_s) settings.duration_s = *change.duration_s;
    if (change.interval_ms) settings.interval_ms = *change.interval_ms;
    if (change.events) settings.events = *change.events;
    if (change.filter) settings.filter = *change.filter;
    if (change.trace_first) settings.trace_first = *change.trace_first;
    if (change.stat) settings.stat = *change.stat;
    if (change.unwind) settings.unwind = *change.unwind;
    if (change.stack_bytes) settings.stack_bytes = *change.stack_bytes;
    if (change.max_depth) {
        settings.max_depth = *change.max_depth;
        settings.max_depth_given = true;
    }
    if (change.kernel) settings.kernel = *change.kernel;
    return settings;
}

bool is_slow(std::string_view command) {
    return command == "list_processes" || command == "list_events" || command == "reprobe" || command == "verify_pid";
}

std::string handle_command(const wire::Command& command, const Machine& machine, Control& control) {
    Result<std::string> reply = dispatch(command, machine, control);
    if (reply) return *std::move(reply);
    return wire::encode_error_reply(command.id, reply.error().message);
}

}  // namespace flamewire::agent
