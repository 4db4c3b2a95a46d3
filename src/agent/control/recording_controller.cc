// The controller's loop, start and end. Commands are in recording_controller_commands.cc.
#include "agent/control/recording_controller.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>

#include "agent/hello.h"
#include "agent/log.h"
#include "agent/recording/recording_encode.h"
#include "agent/recording/targets.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/hex.h"

namespace flamewire::agent {

namespace {

constexpr std::uint64_t ns_per_s = 1'000'000'000;
// How often --name scans for its process.
constexpr std::uint64_t poll_ns = 200'000'000;
// How long to wait for acknowledgments at the end: shorter after a signal, longer after a launched command has exited.
constexpr std::uint32_t flush_after_signal_ms = 2'000, flush_after_command_ms = 10'000;
// timeout(1) signals both a process and its group. Signals this close together count as one.
constexpr std::uint64_t same_signal_ns = 100'000'000;
constexpr std::size_t worker_capacity = 16;

std::string joined(const std::vector<std::string>& words) {
    std::string text;
    for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
    return text;
}

}  // namespace

RecordingController::RecordingController(Options options, std::optional<secure::PairingKey> pairing,
                                         LaunchedCommand* command, UniqueFd signals)
    : options_(std::move(options)),
      pairing_(std::move(pairing)),
      command_(command),
      signals_(std::move(signals)),
      wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      settings_(options_.settings),
      modules_(options_.module_cap_bytes,
               [this](const FileIdentity& identity) -> Result<UniqueFd> {
                   const std::shared_ptr<Recorder> last = recorder();
                   if (!last) return fail(ErrorCode::not_found, "nothing was recorded yet");
                   return last->open_module(identity);
               }),
      worker_(worker_capacity) {
    std::array<std::uint8_t, 8> id{};
    fill_random(id.data(), id.size());
    agent_id_ = to_hex(std::as_bytes(std::span(id)));
}

RecordingController::~RecordingController() {
    worker_.stop();
    if (health_) health_->stop();
    if (link_) link_->stop();
}

std::shared_ptr<Recorder> RecordingController::recorder() const {
    const std::lock_guard lock(mutex_);
    return recorder_;
}

void RecordingController::quit(int exit_code) {
    if (!exit_code_) exit_code_ = exit_code;
}

void RecordingController::fail_with(const Error& error) {
    log_line(error.message);
    quit(1);
}

int RecordingController::run() {
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
    {
        // With a target, skip the full probe, which spins for up to 50 ms.
        Capabilities found = options_.has_target() ? read_capabilities(sysfs_) : probe();
        const std::lock_guard lock(mutex_);
        capabilities_ = std::move(found);
    }
    if (options_.mode != Mode::output)
        if (auto linked = start_link(); !linked) {
            fail_with(linked.error());
            return 1;
        }
    start_health();
    if (auto started = start_target(); !started) {
        fail_with(started.error());
        // As in shells: 127 for not found, 126 for found but not executable.
        if (command_gone_) exit_code_ = started.error().errno_value == ENOENT ? 127 : 126;
    }
    while (!exit_code_) {
        wait();
        handle_signals();
        check_end();
        check_recording();
        check_clock();
        if (waiting_for_name_)
            find_named_processes();
        else if (named_)
            follow_name();
        handle_commands();
    }
    finish();
    return *exit_code_;
}

Result<bool> RecordingController::start_link() {
    LinkOptions link;
    link.listen = options_.mode == Mode::listen;
    link.host = options_.host;
    link.port = options_.port;
    link.key = pairing_;
    link.key_file = options_.pair_file;
    link.insecure = options_.insecure;
    link.spool_bytes = options_.spool_bytes;
    Link::Callbacks callbacks;
    callbacks.hello = [this] { return hello(); };
    callbacks.command = [this](wire::Command command) { take_command(std::move(command)); };
    callbacks.new_epoch_wanted = [this] {
        if (const std::shared_ptr<Recorder> last = recorder()) last->begin_epoch();
    };
    if (!link.listen) log("connecting to {} port {}", link.host, link.port);
    link_ = TRY(Link::start(link, std::move(callbacks)));
    link_ready_ = link_.get();
    link_sink_.emplace(*link_);
    if (link.listen) log("listening on {} port {}", link.host, link.port);
    if (!options_.has_target()) log_line("waiting for commands");
    return true;
}

void RecordingController::start_health() {
    health_.emplace(options_.health, HealthReporter::Callbacks{[this] { return read_own_state(); },
                                                               [this](std::string frame) {
                                                                   if (file_)
                                                                       file_->put_metrics(frame);
                                                                   else
                                                                       link_->send_metrics(std::move(frame));
                                                               }});
}

// Called on the reporter's thread. A file gets health data only during a recording, a server whenever it is connected.
std::optional<OwnState> RecordingController::read_own_state() {
    OwnState own;
    const std::shared_ptr<Recorder> last = recorder();
    const bool recording = last && !last->ended();
    // For a wide target, the machine's health is the target's.
    Running running = recording ? last->running() : Running{};
    if (recording && !running.scope.wide) {
        own.pids = std::move(running.pids);
        for (const std::uint32_t pid : running.members)
            if (std::ranges::find(own.pids, pid) == own.pids.end()) own.pids.push_back(pid);
        if (own.pids.size() > limits::max_pids) own.pids.resize(limits::max_pids);
    }
    OwnCost& cost = own.cost;
    if (link_) {
        const Link::Status link = link_->status();
        if (!link.connected) return std::nullopt;
        cost.queue_batches = link.queue_batches;
        cost.spool_bytes = link.spool_bytes;
        cost.frames_dropped = link.dropped_metrics;
    } else if (!recording || !file_) {
        return std::nullopt;
    }
    if (last) {
        const Accounting counts = last->accounting();
        cost.samples_read = counts.samples_read;
        cost.samples_lost = counts.samples_lost;
        if (recording) cost.ring_bytes = counts.ring_bytes;
    }
    cost.cpu_ns = process_cpu_ns();
    cost.rss_bytes = memory_.bytes();
    return own;
}

wire::Hello RecordingController::hello() {
    const std::shared_ptr<Recorder> last = recorder();
    std::string_view state = "idle";
    if (last && !last->ended()) state = last->paused() ? "paused" : "profiling";
    Capabilities known = capabilities();
    if (known.sampling_events.empty() && last) known.sampling_events = last->running().events;
    return make_hello(agent_id_, machine_, known, state);
}

Result<bool> RecordingController::start_target() {
    if (command_ != nullptr) return start_command();
    if (!options_.names.empty()) {
        named_.emplace(options_.names);
        waiting_for_name_ = true;
        find_named_processes();
        if (waiting_for_name_) {
            log("waiting for a process named {}", named_->text());
            const std::lock_guard lock(mutex_);
            waiting_for_ = named_->text();
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
    (void)TRY(record({joined(options_.command), {command_->pid()}}, settings_, first_requested_));
    auto running = command_->exec();
    if (!running) {
        command_gone_ = true;
        recorder()->stop("the command cannot be run", 127);
        end_capture();
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

void RecordingController::find_named_processes() {
    const std::uint64_t now = monotonic_ns();
    if (now < next_poll_ns_) return;
    next_poll_ns_ = now + poll_ns;
    std::vector<std::uint32_t> pids = named_->scan();
    if (pids.empty()) return;
    if (pids.size() > limits::max_pids) pids.resize(limits::max_pids);
    auto started = record(describe_target(pids), settings_, first_requested_);
    // The process may have exited already. Then wait for the next one.
    if (!started && started.error().code == ErrorCode::not_found) return;
    waiting_for_name_ = false;
    {
        const std::lock_guard lock(mutex_);
        waiting_for_.clear();
    }
    if (!started) fail_with(started.error());
}

void RecordingController::wait() {
    const std::uint64_t now = monotonic_ns();
    std::uint64_t until = now + 3600 * ns_per_s;
    if (waiting_for_name_ || (named_ && recording_)) until = std::min(until, next_poll_ns_);
    if (output_ends_ns_) until = std::min(until, *output_ends_ns_);
    std::array<pollfd, 2> fds{pollfd{signals_.get(), POLLIN, 0}, pollfd{wake_.get(), POLLIN, 0}};
    (void)::poll(fds.data(), fds.size(), until <= now ? 0 : static_cast<int>((until - now + 999'999) / 1'000'000));
    std::uint64_t ignored = 0;
    (void)!::read(wake_.get(), &ignored, sizeof(ignored));
}

void RecordingController::handle_signals() {
    signalfd_siginfo info{};
    while (::read(signals_.get(), &info, sizeof(info)) == static_cast<ssize_t>(sizeof(info))) {
        if (info.ssi_signo == SIGCHLD) continue;
        if (signalled_ns_ != 0) {
            if (monotonic_ns() - signalled_ns_ < same_signal_ns) continue;
            log_line("second signal: ending at once");
            ::_exit(128 + static_cast<int>(info.ssi_signo));
        }
        // Do not wait for the end of the recording, so that a second signal is handled.
        if (const std::shared_ptr<Recorder> current = recorder(); recording_ && current)
            current->request_stop("agent ends", 0);
        signalled_ns_ = monotonic_ns();
        // A terminal also signals the command. kill(1) signals only the agent, so forward the signal.
        const bool from_terminal = info.ssi_code > 0;
        if (command_ != nullptr && !command_->poll_exit() && !from_terminal)
            command_->signal(static_cast<int>(info.ssi_signo));
    }
}

void RecordingController::check_end() {
    const bool ending = signalled_ns_ != 0 && recording_;
    if (exit_code_ || ending) return;
    if (command_ == nullptr) {
        if (signalled_ns_ != 0) quit(0);
        return;
    }
    if (const std::optional<int> code = command_->poll_exit()) {
        end_recording("target exited", *code);
        quit(*code);
    }
}

void RecordingController::check_recording() {
    const std::shared_ptr<Recorder> current = recorder();
    if (!recording_ || !current) return;
    const std::optional<Ended> ended = current->ended();
    if (!ended) return;
    end_recording({}, 0);
    if (ended->error) {
        fail_with(*ended->error);
    } else if (signalled_ns_ != 0) {
        check_end();
    } else if (options_.mode == Mode::output && command_ == nullptr) {
        quit(0);
    } else if (command_ == nullptr) {
        log_line("waiting for commands");
    }
}

void RecordingController::check_clock() {
    if (!output_ends_ns_ || monotonic_ns() < *output_ends_ns_) return;
    output_ends_ns_.reset();
    end_recording("duration reached", 0);
    if (command_ == nullptr)
        quit(0);
    else
        log_line("the command continues; the agent waits until it ends");
}

// Captures only the first recording.
Result<Environment> RecordingController::begin_capture(const RecordingPlan& plan, const Capabilities& capabilities,
                                                       BatchSink*& sink) {
    Environment environment;
    const std::string path = std::exchange(options_.capture, {});
    capture_ = TRY(Capture::begin(path));
    capturing_sink_.emplace(*sink, *capture_);
    sink = &*capturing_sink_;
    (void)capture_->input(inputs::plan, encode_plan(plan));
    (void)capture_->input(inputs::capabilities, encode_capabilities(capabilities));
    (void)capture_->input(inputs::machine, encode_machine(machine_));
    if (plan.follows_name) (void)capture_->input(inputs::follows_name, "yes");
    if (sink->names_kernel_at_end()) (void)capture_->input(inputs::kernel_names_at_end, "yes");
    environment.system = capture_.get();
    environment.kernel = &capture_->kernel();
    log("capturing the inputs of this recording to {}", path);
    return environment;
}

// Call it after the sampler thread has ended.
void RecordingController::end_capture() {
    if (!capture_) return;
    capture_->flush();
    if (const auto& why = capture_->truncated())
        log("the capture is incomplete: {}", *why);
    else
        log("captured {} bytes", capture_->size_bytes());
    capturing_sink_.reset();
    capture_.reset();
}

// Ends the running recording, with `reason` unless it has ended by itself, and logs the result.
void RecordingController::end_recording(std::string reason, std::int32_t exit_code) {
    const std::shared_ptr<Recorder> current = recorder();
    if (!recording_ || !current) return;
    current->stop(std::move(reason), exit_code);
    end_capture();
    {
        const std::lock_guard lock(mutex_);
        recording_ = false;
        waiting_for_.clear();
    }
    named_.reset();
    output_ends_ns_.reset();
    if (const auto ended = current->ended()) log_end(*current, *ended);
}

void RecordingController::log_end(const Recorder& recorder, const Ended& ended) const {
    const Accounting counts = recorder.accounting();
    const bool sampled = recorder.running().settings.samples();
    const std::string size = file_ && options_.output != "-"
                                 ? fmt::format(", {} bytes in {}", file_->size_bytes(), options_.output)
                                 : std::string();
    const std::string_view reason = ended.error ? "stopped by an error" : std::string_view(ended.reason);
    if (sampled)
        log("{}: {} samples, {} lost, {} batches{}", reason, counts.rows_samples,
            counts.samples_lost + counts.samples_dropped, counts.batches, size);
    else
        log("{}: {} batches of counters{}", reason, counts.batches, size);
    if (sampled) detail("{}", recorder.account_line());
    detail("{} ms of CPU, {} KiB resident", process_cpu_ns() / 1'000'000, ResidentMemory().bytes() / 1024);
    if (sampled && counts.rows_samples == 0 && counts.samples_lost == 0 && !ended.error)
        log_line(
            "no samples: the event was too rare for this rate (--frequency, --count), or the target used hardly any "
            "CPU");
    if (!sampled || options_.verbose) print_counters(recorder);
}

void RecordingController::print_counters(const Recorder& recorder) const {
    const CounterTotals totals = recorder.counter_totals();
    if (totals.sums.empty()) return;
    const Running running = recorder.running();
    std::string title = running.scope.wide ? "'" + running.target : "process id '";
    std::optional<counters::CommandTimes> times;
    if (command_ != nullptr && running.pids == std::vector{command_->pid()}) {
        title = "'" + joined(options_.command);
        times = {command_->user_ns(), command_->system_ns()};
    } else {
        for (const std::uint32_t pid : running.pids)
            title += fmt::format("{}{}", pid == running.pids.front() ? "" : ",", pid);
    }
    const std::string table = counters::perf_stat_table(counters::derive(totals.sums, totals.elapsed_ns), title + "'",
                                                        totals.elapsed_ns, times);
    (void)write_all(options_.prints_table() ? STDOUT_FILENO : STDERR_FILENO, as_bytes_view(table));
}

void RecordingController::finish() {
    end_recording("agent ends", 0);
    worker_.stop();
    if (health_) health_->stop();
    if (!link_) return;
    if (!link_->flush(0)) {
        const std::uint32_t patience =
            signalled_ns_ != 0 || command_ == nullptr ? flush_after_signal_ms : flush_after_command_ms;
        if (patience > flush_after_signal_ms)
            log("waiting up to {} s for the server to accept the rest", patience / 1000);
        if (!link_->flush(patience))
            log("the server did not accept {} bytes; they are lost", link_->status().spool_bytes);
    }
    link_->stop();
}

}  // namespace flamewire::agent
