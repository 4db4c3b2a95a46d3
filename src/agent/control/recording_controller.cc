#include "agent/control/recording_controller.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "agent/control/doctor.h"
#include "agent/control/recording_log.h"
#include "agent/hello.h"
#include "agent/log.h"
#include "agent/perf/tracepoint.h"
#include "agent/probes/place_breakpoints.h"
#include "agent/probes/tracefs_events.h"
#include "agent/recording/targets.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/program.h"

namespace flamewire::agent {

namespace {

// How often --name scans for its process, and for more of the name that is recorded.
constexpr std::uint64_t poll_ns = 200'000'000, follow_ns = 1'000'000'000;

// A server may not choose breakpoints of the whole machine or of the kernel. The agent's own list may contain any.
Result<bool> check_breakpoints(const RecordingPlan& plan, const Settings& own) {
    const bool by_server = plan.wanted.by_server && plan.settings.events != own.events;
    for (const EventSpec& spec : plan.wanted.events) {
        if (!is_breakpoint(spec)) continue;
        const bool kernel = std::ranges::any_of(
            spec.parts, [](const EventPart& part) { return is_breakpoint(part) && is_kernel_address(part.config1); });
        if (by_server && (plan.scope.wide || kernel))
            return fail(ErrorCode::permission,
                        fmt::format("{}: servers may set breakpoints only in the user space of processes, not in the "
                                    "kernel, the whole system or control groups",
                                    spec.name));
        if (kernel && (!plan.settings.kernel || spec.exclude_kernel))
            return fail(ErrorCode::invalid,
                        fmt::format("{}: a kernel address needs kernel mode, which is excluded here", spec.name));
    }
    return true;
}

}  // namespace

std::optional<Error> problem_of(const std::vector<std::uint32_t>& pids) {
    const auto own = static_cast<std::uint32_t>(::getpid());
    for (const std::uint32_t pid : pids) {
        if (pid == own) return Error{ErrorCode::invalid, 0, fmt::format("process {} is the agent itself", pid)};
        if (!identify_process(pid)) return Error{ErrorCode::not_found, 0, fmt::format("process {} not found", pid)};
    }
    return std::nullopt;
}

RecordingController::RecordingController(const Options& options, const Machine& machine, std::string agent_id,
                                         LaunchedCommand* command, int wake, std::function<void()> on_start)
    : options_(options),
      machine_(machine),
      agent_id_(std::move(agent_id)),
      command_(command),
      wake_(wake),
      on_start_(std::move(on_start)),
      capture_(options.capture),
      probes_(sysfs_, options.max_slowdown_percent),
      settings_(options.settings) {}

std::optional<int> RecordingController::prepare() {
    auto wanted = parse_requested(settings_, sysfs_);
    if (!wanted) {
        log("--{}", wanted.error().message);
        return wanted.error().code == ErrorCode::invalid ? 2 : 1;
    }
    first_requested_ = *std::move(wanted);
    auto allowed = AllowedProcesses::of(options_.allowed);
    if (!allowed) {
        log_line(allowed.error().message);
        return 1;
    }
    allowed_ = *std::move(allowed);
    if (options_.mode == Mode::output && !options_.prints_table()) {
        file_.emplace(options_.output, options_.force);
        if (auto possible = file_->check(); !possible) {
            log_line(possible.error().message);
            return 1;
        }
    }
    if (!options_.capture.empty() && file_status(options_.capture)) {
        log("cannot capture to {}: the file exists. Remove it or give another name.", options_.capture);
        return 1;
    }
    for (const std::string& folder : tracefs_folders(sysfs_))
        if (const std::size_t removed = remove_stale_events("/sys/" + folder); removed != 0)
            log("removed {} probes of agents that did not end properly", removed);
    // With a target, skip the full probe, which spins for up to 50 ms.
    set_capabilities(options_.has_target() ? read_capabilities(sysfs_) : examine_machine(sysfs_));
    return std::nullopt;
}

Result<bool> RecordingController::start_target() {
    if (command_ != nullptr) return start_command();
    if (!options_.names.empty()) {
        followed_.emplace(NamedProcesses(options_.names), false);
        waiting_for_name_ = true;
        (void)TRY(find_named());
        if (waiting_for_name_) {
            log("waiting for a process named {}", followed_->processes.text());
            set_waiting_for(followed_->processes.text());
        }
        return true;
    }
    if (options_.wide.given()) {
        RecordingTarget target = TRY(find_wide(options_.wide));
        (void)TRY(record(std::move(target), settings_, first_requested_));
        return true;
    }
    if (options_.pids.empty()) return true;
    if (auto problem = problem_of(options_.pids)) return std::unexpected(*std::move(problem));
    (void)TRY(record(describe_target(options_.pids), settings_, first_requested_));
    return true;
}

Result<bool> RecordingController::start_command() {
    (void)TRY(record({command_text(options_.command), {command_->pid()}}, settings_, first_requested_));
    auto running = command_->exec();
    if (!running) {
        command_gone_ = true;
        recorder()->stop("the command cannot be run", 127);
        capture_.end();
        {
            const std::lock_guard lock(mutex_);
            recording_ = false;
        }
        if (file_) file_->discard();
        return std::unexpected(std::move(running).error());
    }
    (void)recorder()->execute(BeginDelay{});
    return true;
}

BatchSink& RecordingController::choose_sink() {
    if (file_) {
        file_->set_hello(make_hello(agent_id_, machine_, capabilities(), "profiling"));
        return *file_;
    }
    // Not live with a launched command, because its output would mix with the table.
    if (options_.sched) return sched_sink_.emplace(options_.command.empty() && ::isatty(STDOUT_FILENO) != 0);
    if (options_.prints_table()) return no_sink_;
    return *link_sink_;
}

ProbeTarget RecordingController::probe_target(std::vector<std::uint32_t> pids, const Scope& scope,
                                              bool by_server) const {
    ProbeTarget target{std::move(pids), {}, by_server && !options_.allowed.all(), by_server};
    for (const std::string& folder : scope.cgroups) {
        const std::vector<std::uint32_t> members = processes_of_cgroup(folder, limits::max_pids);
        target.pids.insert(target.pids.end(), members.begin(), members.end());
    }
    return target;
}

Result<bool> RecordingController::prepare_probes(RecordingPlan& plan) {
    (void)TRY(check_breakpoints(plan, options_.settings));
    (void)TRY(place_breakpoints(plan.wanted.events, plan.scope.wide ? std::vector<std::uint32_t>() : plan.pids,
                                plan.launched ? plan.program : std::string()));
    ProbeTarget target = probe_target(plan.pids, plan.scope, plan.wanted.by_server);
    target.program = plan.program;
    if (plan.launched) target.pids.clear();
    std::optional<CounterSetOptions> running;
    if (!plan.launched) running = CounterSetOptions{.pids = plan.pids, .scope = plan.scope};
    return probes_.prepare(plan.wanted, plan.settings, target, running);
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
    plan.follows_name = followed_.has_value();
    (void)TRY(prepare_probes(plan));
    BatchSink* sink = &choose_sink();
    const Capabilities capabilities = read_capabilities(sysfs_);
    Environment environment = TRY(capture_.begin(plan, capabilities, machine_, sink));
    environment.boost_priority = &boost_priority;
    const auto on_end = [wake = wake_] {
        const std::uint64_t one = 1;
        (void)!::write(wake, &one, sizeof(one));
    };
    auto opened = Recorder::open(std::move(plan), capabilities, machine_, *sink, on_end, environment);
    if (!opened) capture_.end();
    std::shared_ptr<Recorder> recorder = TRY(std::move(opened));
    Running running = recorder->running();
    {
        const std::lock_guard lock(mutex_);
        recorder_ = std::move(recorder);
        recording_ = true;
        waiting_for_.clear();
    }
    waiting_for_name_ = false;
    on_start_();
    const bool until_command_ends = command_ != nullptr && !options_.duration_given;
    if (options_.mode == Mode::output && !until_command_ends)
        ends_ns_ = monotonic_ns() + std::uint64_t{options_.settings.duration_s} * options_.rounds * 1'000'000'000;
    log_start(running);
    return running;
}

Result<bool> RecordingController::poll_names() {
    if (waiting_for_name_) return find_named();
    if (followed_) follow_name();
    return true;
}

std::optional<std::uint64_t> RecordingController::next_poll_ns() const {
    return waiting_for_name_ || (followed_ && recording_) ? std::optional(next_poll_ns_) : std::nullopt;
}

Result<bool> RecordingController::find_named() {
    const std::uint64_t now = monotonic_ns();
    if (now < next_poll_ns_) return true;
    next_poll_ns_ = now + poll_ns;
    std::vector<std::uint32_t> pids = followed_->processes.scan();
    if (pids.empty()) return true;
    if (pids.size() > limits::max_pids) pids.resize(limits::max_pids);
    auto started = record(describe_target(pids), settings_, first_requested_);
    // The process may have exited already. Then wait for the next one.
    if (!started && started.error().code == ErrorCode::not_found) return true;
    waiting_for_name_ = false;
    set_waiting_for({});
    if (!started) return std::unexpected(std::move(started).error());
    return true;
}

// Adds processes of the name that have started in the meantime.
void RecordingController::follow_name() {
    const std::uint64_t now = monotonic_ns();
    const std::shared_ptr<Recorder> recorder = current();
    if (now < next_poll_ns_ || !recorder) return;
    next_poll_ns_ = now + follow_ns;
    std::vector<std::uint32_t> pids = followed_->processes.scan();
    if (followed_->by_server) pids = allowed_.among(std::move(pids));
    const Running running = recorder->running();
    const auto is_recorded = [&](std::uint32_t pid) {
        return std::ranges::find(running.pids, pid) != running.pids.end() ||
               std::ranges::find(running.members, pid) != running.members.end();
    };
    const bool none = pids.empty() && running.members.empty();
    if (none && waiting_for().empty()) log("waiting for another process named {}", followed_->processes.text());
    set_waiting_for(none ? followed_->processes.text() : std::string());
    std::erase_if(pids, is_recorded);
    if (pids.empty()) return;
    add_breakpoints(pids);
    const auto added = recorder->execute(AddProcesses{pids});
    if (added) {
        if (*added) log("now {}", recorder->running().target);
        return;
    }
    // Processes that have already exited are not an error, because others may still be alive.
    if (added.error().code != ErrorCode::not_found && added.error().code != ErrorCode::closed)
        log("cannot record another process named {}: {}", followed_->processes.text(), added.error().message);
}

// Finds the breakpoints on symbols in processes that may be added.
void RecordingController::add_breakpoints(std::vector<std::uint32_t> pids) {
    const Running running = current()->running();
    auto wanted = parse_requested(running.settings, sysfs_);
    if (!wanted) return;
    std::vector<EventSpec>& all = wanted->events;
    std::erase_if(all, [](const EventSpec& spec) { return !spec.breakpoint; });
    if (all.empty()) return;
    const auto recorded = static_cast<std::size_t>(
        std::ranges::count_if(running.pids, [](std::uint32_t pid) { return identify_process(pid).has_value(); }));
    pids.resize(std::min(pids.size(), limits::max_pids - std::min(limits::max_pids, recorded)));
    const std::vector<EventSpec> unplaced = all;
    for (const std::uint32_t pid : pids) {
        std::vector<EventSpec> placed = unplaced;
        if (auto found = place_breakpoints(placed, {pid}, {}); !found) {
            log("process {} has no breakpoints: {}", pid, found.error().message);
            continue;
        }
        for (std::size_t i = 0; i < all.size(); ++i)
            all[i].parts.insert(all[i].parts.end(), placed[i].parts.begin(), placed[i].parts.end());
    }
    (void)current()->execute(AddBreakpoints{std::move(all)});
}

std::optional<FollowedName> RecordingController::follow(std::optional<FollowedName> name) {
    return std::exchange(followed_, std::move(name));
}

void RecordingController::follow_nothing() {
    followed_.reset();
    set_waiting_for({});
}

void RecordingController::end(std::string reason, std::int32_t exit_code) {
    const std::shared_ptr<Recorder> recorder = current();
    if (!recorder) return;
    recorder->stop(std::move(reason), exit_code);
    capture_.end();
    {
        const std::lock_guard lock(mutex_);
        recording_ = false;
        waiting_for_.clear();
    }
    followed_.reset();
    ends_ns_.reset();
    const auto file_bytes = file_ && options_.output != "-" ? std::optional(file_->size_bytes()) : std::nullopt;
    if (const auto ended = recorder->ended()) log_end(*recorder, *ended, options_, file_bytes, command_);
}

std::optional<Ended> RecordingController::take_ended() {
    const std::shared_ptr<Recorder> recorder = current();
    std::optional<Ended> ended = recorder ? recorder->ended() : std::nullopt;
    if (ended) end({}, 0);
    return ended;
}

std::shared_ptr<Recorder> RecordingController::recorder() const {
    const std::lock_guard lock(mutex_);
    return recorder_;
}

Settings RecordingController::settings() const {
    const std::lock_guard lock(mutex_);
    return settings_;
}

void RecordingController::set_next(Settings settings, RequestedEvents wanted) {
    first_requested_ = std::move(wanted);  // for the process that --name may still wait for
    const std::lock_guard lock(mutex_);
    settings_ = std::move(settings);
}

Capabilities RecordingController::capabilities() const {
    const std::lock_guard lock(mutex_);
    return capabilities_;
}

void RecordingController::set_capabilities(Capabilities capabilities) {
    const std::lock_guard lock(mutex_);
    capabilities_ = std::move(capabilities);
}

std::string RecordingController::waiting_for() const {
    const std::lock_guard lock(mutex_);
    return waiting_for_;
}

void RecordingController::set_waiting_for(std::string name) {
    const std::lock_guard lock(mutex_);
    waiting_for_ = std::move(name);
}

}  // namespace flamewire::agent
