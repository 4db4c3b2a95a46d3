// The actions of commands. All except the three slow ones run on the controller's thread.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "agent/control/doctor.h"
#include "agent/control/recording_controller.h"
#include "agent/hello.h"
#include "agent/log.h"
#include "agent/recording/targets.h"
#include "base/clock.h"
#include "base/program.h"

namespace flamewire::agent {

namespace {

// Limit of commands that wait for the controller's thread. More are refused.
constexpr std::size_t max_waiting_commands = 64;
constexpr std::chrono::milliseconds cpu_interval{500};
constexpr std::size_t max_listed_processes = 200;
// How often processes are scanned for more of the name that is recorded.
constexpr std::uint64_t follow_ns = 1'000'000'000;

std::string describe_events(const Running& running) {
    std::vector<std::string> names = running.events;
    // A hybrid CPU has each counter once per kind of core.
    if (!running.settings.samples())
        for (const CounterState& counter : running.counters)
            if (std::ranges::find(names, counter.name) == names.end()) names.push_back(counter.name);
    std::string text;
    for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
    return text;
}

std::string describe_rate(const Running& running) {
    if (running.settings.period != 0) return fmt::format("every {} events", running.settings.period);
    if (running.effective_frequency_hz != running.settings.frequency_hz)
        return fmt::format("{} Hz ({} requested)", running.effective_frequency_hz, running.settings.frequency_hz);
    return fmt::format("{} Hz", running.effective_frequency_hz);
}

std::vector<std::uint32_t> allowed_among(std::vector<std::uint32_t> pids, const AllowedProcesses& allowed) {
    std::erase_if(pids, [&](std::uint32_t pid) { return allowed.refusal(pid).has_value(); });
    return pids;
}

}  // namespace

void RecordingController::take_command(wire::Command command) {
    {
        const std::lock_guard lock(mutex_);
        if (commands_.size() < max_waiting_commands) {
            commands_.push_back(std::move(command));
            const std::uint64_t one = 1;
            (void)!::write(wake_.get(), &one, sizeof(one));
            return;
        }
    }
    if (Link* const link = link_ready_)
        link->reply(wire::encode_error_reply(command.id, "too many commands are waiting"));
}

void RecordingController::handle_commands() {
    for (;;) {
        wire::Command command;
        {
            const std::lock_guard lock(mutex_);
            if (commands_.empty()) return;
            command = std::move(commands_.front());
            commands_.pop_front();
        }
        if (command.name == "fetch_module") {
            send_module(command);
            continue;
        }
        if (!is_slow(command.name)) {
            link_->reply(handle_command(command, machine_, *this));
            continue;
        }
        const std::string id = command.id;
        auto job = std::make_shared<wire::Command>(std::move(command));  // std::function must be copyable
        const bool taken = worker_.submit([this, job] { link_->reply(handle_command(*job, machine_, *this)); });
        if (!taken) link_->reply(wire::encode_error_reply(id, "too many commands are waiting"));
    }
}

void RecordingController::send_module(const wire::Command& command) {
    const auto read = [&]() -> Result<wire::ModuleChunk> {
        const FetchRequest request = TRY(parse_fetch(command));
        return modules_.read(request);
    };
    auto chunk = read();
    if (chunk && !link_->send_module_chunk(wire::encode_module_chunk(*chunk)))
        chunk = fail(ErrorCode::busy, "the previous part has not been sent yet");
    if (!chunk) link_->reply(encode_fetch_refusal(command.id, chunk.error()));
}

std::optional<Error> RecordingController::problem_of(const std::vector<std::uint32_t>& pids) const {
    const auto own = static_cast<std::uint32_t>(::getpid());
    for (const std::uint32_t pid : pids) {
        if (pid == own) return Error{ErrorCode::invalid, 0, fmt::format("process {} is the agent itself", pid)};
        if (!identify_process(pid)) return Error{ErrorCode::not_found, 0, fmt::format("process {} not found", pid)};
    }
    return std::nullopt;
}

std::optional<Error> RecordingController::problem_for_server(const std::vector<std::uint32_t>& pids) const {
    if (auto problem = problem_of(pids)) return problem;
    for (const std::uint32_t pid : pids)
        if (auto refused = allowed_.refusal(pid)) return refused;
    return std::nullopt;
}

Result<RecordingTarget> RecordingController::wide_for_server(const WideTarget& wide) const {
    if (!options_.allowed.all())
        return fail(ErrorCode::permission,
                    "this agent lets servers profile only some processes (--allow-pid, --allow-user, --allow-command), "
                    "not the whole system or control groups");
    return find_wide(wide);
}

Result<Running> RecordingController::record(RecordingTarget target, Settings settings, RequestedEvents wanted) {
    (void)TRY(check_unwind_here(settings.unwind, capabilities()));
    RecordingPlan plan;
    plan.target = std::move(target.name);
    plan.pids = std::move(target.pids);
    plan.scope = std::move(target.scope);
    plan.settings = std::move(settings);
    plan.wanted = std::move(wanted);
    plan.launched = command_ != nullptr && plan.pids.size() == 1 && plan.pids.front() == command_->pid();
    if (plan.launched) plan.program = find_program(options_.command.front());
    plan.delay_ms = options_.delay_ms;
    plan.ring_pages = options_.ring_pages;
    plan.follows_name = named_.has_value();
    BatchSink* sink = nullptr;
    if (file_) {
        file_->set_hello(make_hello(agent_id_, machine_, capabilities(), "profiling"));
        sink = &*file_;
    } else if (options_.sched) {
        // Not live with a launched command, because its output would mix with the table.
        sink = &sched_sink_.emplace(options_.command.empty() && ::isatty(STDOUT_FILENO) != 0);
    } else if (options_.prints_table()) {
        sink = &no_sink_;
    } else {
        sink = &*link_sink_;
    }
    const Capabilities capabilities = capabilities_now();
    Environment environment;
    if (!options_.capture.empty()) environment = TRY(begin_capture(plan, capabilities, sink));
    environment.boost_priority = &boost_priority;
    const auto on_end = [this] {
        const std::uint64_t one = 1;
        (void)!::write(wake_.get(), &one, sizeof(one));
    };
    auto opened = Recorder::open(std::move(plan), capabilities, machine_, *sink, on_end, environment);
    if (!opened) end_capture();
    std::shared_ptr<Recorder> recorder = TRY(std::move(opened));
    Running running = recorder->running();
    {
        const std::lock_guard lock(mutex_);
        recorder_ = std::move(recorder);
        recording_ = true;
        waiting_for_.clear();
    }
    waiting_for_name_ = false;
    health_->round_soon();
    const bool until_command_ends = command_ != nullptr && !options_.duration_given;
    if (options_.mode == Mode::output && !until_command_ends)
        output_ends_ns_ =
            monotonic_ns() + std::uint64_t{options_.settings.duration_s} * options_.rounds * 1'000'000'000;
    if (running.settings.samples())
        log("profiling {}: {}, {}, {}", running.target, describe_events(running), describe_rate(running),
            running.kernel ? "user and kernel" : "user only");
    else
        log("counting {}: {}", running.target, describe_events(running));
    return running;
}

StatusReport RecordingController::status() {
    StatusReport report;
    std::shared_ptr<Recorder> last;
    {
        const std::lock_guard lock(mutex_);
        last = recorder_;
        report.settings = settings_;
        report.waiting_for = waiting_for_;
    }
    if (last) {
        report.accounting = last->accounting();
        if (!last->ended()) {
            report.state = last->paused() ? State::paused : State::profiling;
            report.running = last->running();
        }
    }
    if (Link* const link = link_ready_) {
        const Link::Status now = link->status();
        report.link = now.connected ? now.peer : std::string();
        report.spool_bytes = now.spool_bytes;
    }
    return report;
}

Capabilities RecordingController::capabilities() {
    const std::lock_guard lock(mutex_);
    return capabilities_;
}

Result<Running> RecordingController::start(const StartRequest& request) {
    check_recording();  // a recording that has just ended must not prevent this one
    auto named_before = std::exchange(named_, std::nullopt);
    const bool by_server_before = std::exchange(named_by_server_, true);
    auto started = start_requested(request);
    if (!started) {
        named_ = std::move(named_before);
        named_by_server_ = by_server_before;
    }
    return started;
}

Result<Running> RecordingController::start_requested(const StartRequest& request) {
    const Settings settings = changed(settings_, request.change);
    if (request.wide.given()) {
        RecordingTarget target = TRY(wide_for_server(request.wide));
        RequestedEvents wanted = TRY(parse_requested(settings, sysfs_));
        return record(std::move(target), settings, std::move(wanted));
    }
    std::vector<std::uint32_t> pids = request.pids;
    if (pids.empty()) {
        named_.emplace(std::vector{request.name});
        pids = named_->scan();
        if (pids.empty()) return fail(ErrorCode::not_found, fmt::format("no process named {}", request.name));
        // Select the allowed processes. If none is allowed, problem_for_server() reports why.
        if (std::vector<std::uint32_t> own = allowed_among(pids, allowed_); !own.empty()) pids = std::move(own);
        if (pids.size() > limits::max_pids) pids.resize(limits::max_pids);
    }
    if (auto problem = problem_for_server(pids)) return std::unexpected(*std::move(problem));
    RequestedEvents wanted = TRY(parse_requested(settings, sysfs_));
    return record(describe_target(pids), settings, std::move(wanted));
}

// Adds processes of the name that have started in the meantime.
void RecordingController::follow_name() {
    const std::uint64_t now = monotonic_ns();
    const std::shared_ptr<Recorder> current = recorder();
    if (now < next_poll_ns_ || !recording_ || !current) return;
    next_poll_ns_ = now + follow_ns;
    std::vector<std::uint32_t> pids = named_->scan();
    if (named_by_server_) pids = allowed_among(std::move(pids), allowed_);
    const Running running = current->running();
    const auto is_recorded = [&](std::uint32_t pid) {
        return std::ranges::find(running.pids, pid) != running.pids.end() ||
               std::ranges::find(running.members, pid) != running.members.end();
    };
    const bool none = pids.empty() && running.members.empty();
    {
        const std::lock_guard lock(mutex_);
        if (none && waiting_for_.empty()) log("waiting for another process named {}", named_->text());
        waiting_for_ = none ? named_->text() : std::string();
    }
    std::erase_if(pids, is_recorded);
    if (pids.empty()) return;
    const auto added = current->execute(AddProcesses{pids});
    if (added) {
        if (*added) log("now {}", current->running().target);
        return;
    }
    // Processes that have already exited are not an error, because others may still be alive.
    if (added.error().code != ErrorCode::not_found && added.error().code != ErrorCode::closed)
        log("cannot record another process named {}: {}", named_->text(), added.error().message);
}

Result<Running> RecordingController::stop() {
    const std::shared_ptr<Recorder> current = recorder();
    if (!recording_ || !current) return fail(ErrorCode::busy, "not profiling");
    end_recording("stopped", 0);
    return current->running();
}

Result<Running> RecordingController::pause() {
    const std::shared_ptr<Recorder> current = recorder();
    if (!recording_ || !current) return fail(ErrorCode::busy, "not profiling");
    if (current->paused()) return fail(ErrorCode::busy, "already paused");
    (void)TRY(current->execute(Pause{}));
    log_line("paused");
    return current->running();
}

Result<Running> RecordingController::resume() {
    const std::shared_ptr<Recorder> current = recorder();
    if (!recording_ || !current || !current->paused()) return fail(ErrorCode::busy, "not paused");
    (void)TRY(current->execute(Resume{}));
    log_line("resumed");
    return current->running();
}

Result<std::optional<Running>> RecordingController::configure(const SettingsChange& change) {
    const std::shared_ptr<Recorder> current = recording_ ? recorder() : nullptr;
    std::optional<RecordingTarget> target;
    if (!change.pids.empty() || change.wide.given()) {
        if (!current) return fail(ErrorCode::busy, "not profiling: choose the process with start");
        if (command_ != nullptr)
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
    Settings settings = changed(current ? current->running().settings : settings_, change);
    RequestedEvents wanted = TRY(parse_requested(settings, sysfs_));
    if (!current) {
        first_requested_ = std::move(wanted);  // for the process that --name may still wait for
        const std::lock_guard lock(mutex_);
        settings_ = std::move(settings);
        return std::optional<Running>{};
    }
    const bool other_target = target.has_value();
    (void)TRY(current->execute(
        std::make_shared<const Change>(std::move(settings), std::move(wanted), capabilities_now(), std::move(target))));
    if (other_target) {
        named_.reset();
        const std::lock_guard lock(mutex_);
        waiting_for_.clear();
    }
    const Running running = current->running();
    if (running.settings.samples())
        log("now {}: {}, {}", running.target, describe_events(running), describe_rate(running));
    else
        log("now counting {}: {}", running.target, describe_events(running));
    return std::optional<Running>(running);
}

Result<Running> RecordingController::count_by(CountBy by) {
    const std::shared_ptr<Recorder> current = recorder();
    if (!recording_ || !current) return fail(ErrorCode::busy, "not profiling");
    (void)TRY(current->execute(SetCountBy{by}));
    return current->running();
}

Result<bool> RecordingController::resolve_kernel() {
    const std::shared_ptr<Recorder> current = recorder();
    if (!recording_ || !current) return fail(ErrorCode::busy, "not profiling");
    (void)current->execute(ResolveKernel{});
    return true;
}

HealthSettings RecordingController::configure_metrics(const HealthChange& change) {
    const HealthSettings before = health_->settings();
    const HealthSettings now = changed(before, change);
    if (now != before) health_->change(now);
    return now;
}

std::vector<ProcessEntry> RecordingController::list_processes() {
    std::vector<ProcessEntry> processes =
        agent::list_processes(cpu_interval, options_.allowed.all() ? max_listed_processes : SIZE_MAX);
    std::erase_if(processes, [&](const ProcessEntry& process) { return allowed_.refusal(process.pid).has_value(); });
    if (processes.size() > max_listed_processes) processes.resize(max_listed_processes);
    return processes;
}

ProcessCheck RecordingController::verify_pid(std::uint32_t pid) {
    ProcessCheck check;
    auto identity = identify_process(pid);
    if (!identity) return check;
    check.exists = true;
    check.identity = *std::move(identity);
    check.refused = problem_for_server({pid});
    if (check.refused) {
        if (allowed_.refusal(pid)) check.identity = {};
        return check;
    }
    // The only reliable check is to open the events that `start` would open.
    const Capabilities known = capabilities_now();
    Settings settings;
    {
        const std::lock_guard lock(mutex_);
        settings = settings_;
    }
    const auto try_open = [&]() -> Result<bool> {
        RequestedEvents wanted = TRY(parse_requested(settings, sysfs_));
        EventSetOptions options;
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

Capabilities RecordingController::capabilities_now() const { return read_capabilities(sysfs_); }

Capabilities RecordingController::probe() const { return examine_machine(sysfs_); }

Result<Capabilities> RecordingController::reprobe() {
    Capabilities found = probe();
    const std::lock_guard lock(mutex_);
    capabilities_ = found;
    return found;
}

}  // namespace flamewire::agent
