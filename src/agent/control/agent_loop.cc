#include "agent/control/agent_loop.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <span>

#include "agent/hello.h"
#include "agent/log.h"
#include "base/clock.h"
#include "base/hex.h"

namespace flamewire::agent {

namespace {

constexpr std::uint64_t ns_per_s = 1'000'000'000;
// How long to wait for acknowledgments at the end: shorter after a signal, longer after a launched command has exited.
constexpr std::uint32_t flush_after_signal_ms = 2'000, flush_after_command_ms = 10'000;
// timeout(1) signals both a process and its group. Signals this close together count as one.
constexpr std::uint64_t same_signal_ns = 100'000'000;

std::string random_id() {
    std::array<std::uint8_t, 8> id{};
    fill_random(id.data(), id.size());
    return to_hex(std::as_bytes(std::span(id)));
}

}  // namespace

AgentLoop::AgentLoop(Options options, std::optional<secure::PairingKey> pairing, LaunchedCommand* command,
                     UniqueFd signals)
    : options_(std::move(options)),
      pairing_(std::move(pairing)),
      command_(command),
      signals_(std::move(signals)),
      wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      agent_id_(random_id()),
      recordings_(options_, machine_, agent_id_, command, wake_.get(), [this] { health_->round_soon(); }),
      control_(options_, recordings_, link_ready_, health_, [this] { check_recording(); }),
      commands_(control_, machine_, link_ready_, wake_.get(),
                ModuleTransfers(options_.module_cap_bytes, [this](const FileIdentity& identity) -> Result<UniqueFd> {
                    const std::shared_ptr<Recorder> last = recordings_.recorder();
                    if (!last) return fail(ErrorCode::not_found, "nothing was recorded yet");
                    return last->open_module(identity);
                })) {}

AgentLoop::~AgentLoop() {
    commands_.stop();
    if (health_) health_->stop();
    if (link_) link_->stop();
}

void AgentLoop::quit(int exit_code) {
    if (!exit_code_) exit_code_ = exit_code;
}

void AgentLoop::fail_with(const Error& error) {
    log_line(error.message);
    quit(1);
}

int AgentLoop::run() {
    if (const std::optional<int> failed = recordings_.prepare()) return *failed;
    if (options_.mode != Mode::output)
        if (auto linked = start_link(); !linked) {
            fail_with(linked.error());
            return 1;
        }
    start_health();
    if (auto started = recordings_.start_target(); !started) {
        fail_with(started.error());
        // As in shells: 127 for not found, 126 for found but not executable.
        if (recordings_.command_gone()) exit_code_ = started.error().errno_value == ENOENT ? 127 : 126;
    }
    while (!exit_code_) {
        wait();
        handle_signals();
        check_end();
        check_recording();
        check_clock();
        if (auto found = recordings_.poll_names(); !found) fail_with(found.error());
        commands_.handle();
    }
    finish();
    return *exit_code_;
}

Result<bool> AgentLoop::start_link() {
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
    callbacks.command = [this](wire::Command command) { commands_.take(std::move(command)); };
    callbacks.new_epoch_wanted = [this] {
        if (const std::shared_ptr<Recorder> last = recordings_.recorder()) last->begin_epoch();
    };
    if (!link.listen) log("connecting to {} port {}", link.host, link.port);
    link_ = TRY(Link::start(link, std::move(callbacks)));
    link_ready_ = link_.get();
    recordings_.use_link(*link_);
    if (link.listen) log("listening on {} port {}", link.host, link.port);
    if (!options_.has_target()) log_line("waiting for commands");
    return true;
}

void AgentLoop::start_health() {
    health_.emplace(options_.health, HealthReporter::Callbacks{[this] { return read_own_state(); },
                                                               [this](std::string frame) {
                                                                   if (FileSink* const file = recordings_.file())
                                                                       file->put_metrics(frame);
                                                                   else
                                                                       link_->send_metrics(std::move(frame));
                                                               }});
}

// Called on the reporter's thread. A file gets health data only during a recording, a server whenever it is connected.
std::optional<OwnState> AgentLoop::read_own_state() {
    OwnState own;
    const std::shared_ptr<Recorder> last = recordings_.recorder();
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
    } else if (!recording || recordings_.file() == nullptr) {
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

wire::Hello AgentLoop::hello() {
    const std::shared_ptr<Recorder> last = recordings_.recorder();
    std::string_view state = "idle";
    if (last && !last->ended()) state = last->paused() ? "paused" : "profiling";
    Capabilities known = recordings_.capabilities();
    if (known.sampling_events.empty() && last) known.sampling_events = last->running().events;
    return make_hello(agent_id_, machine_, known, state);
}

void AgentLoop::wait() {
    const std::uint64_t now = monotonic_ns();
    std::uint64_t until = now + 3600 * ns_per_s;
    until = std::min(until, recordings_.next_poll_ns().value_or(until));
    until = std::min(until, recordings_.ends_ns().value_or(until));
    std::array<pollfd, 2> fds{pollfd{signals_.get(), POLLIN, 0}, pollfd{wake_.get(), POLLIN, 0}};
    (void)::poll(fds.data(), fds.size(), until <= now ? 0 : static_cast<int>((until - now + 999'999) / 1'000'000));
    std::uint64_t ignored = 0;
    (void)!::read(wake_.get(), &ignored, sizeof(ignored));
}

void AgentLoop::handle_signals() {
    signalfd_siginfo info{};
    while (::read(signals_.get(), &info, sizeof(info)) == static_cast<ssize_t>(sizeof(info))) {
        if (info.ssi_signo == SIGCHLD) continue;
        if (signalled_ns_ != 0) {
            if (monotonic_ns() - signalled_ns_ < same_signal_ns) continue;
            log_line("second signal: ending at once");
            ::_exit(128 + static_cast<int>(info.ssi_signo));
        }
        // Do not wait for the end of the recording, so that a second signal is handled.
        if (const std::shared_ptr<Recorder> current = recordings_.current()) current->request_stop("agent ends", 0);
        signalled_ns_ = monotonic_ns();
        // A terminal also signals the command. kill(1) signals only the agent, so forward the signal.
        const bool from_terminal = info.ssi_code > 0;
        if (command_ != nullptr && !command_->poll_exit() && !from_terminal)
            command_->signal(static_cast<int>(info.ssi_signo));
    }
}

void AgentLoop::check_end() {
    const bool ending = signalled_ns_ != 0 && recordings_.is_recording();
    if (exit_code_ || ending) return;
    if (command_ == nullptr) {
        if (signalled_ns_ != 0) quit(0);
        return;
    }
    if (const std::optional<int> code = command_->poll_exit()) {
        recordings_.end("target exited", *code);
        quit(*code);
    }
}

void AgentLoop::check_recording() {
    const std::optional<Ended> ended = recordings_.take_ended();
    if (!ended) return;
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

void AgentLoop::check_clock() {
    if (const auto ends_ns = recordings_.ends_ns(); !ends_ns || monotonic_ns() < *ends_ns) return;
    recordings_.end("duration reached", 0);
    if (command_ == nullptr)
        quit(0);
    else
        log_line("the command continues; the agent waits until it ends");
}

void AgentLoop::finish() {
    recordings_.end("agent ends", 0);
    commands_.stop();
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
