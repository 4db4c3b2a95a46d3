// Runs the agent: starts the link, starts recordings for the command line and for commands, handles signals, the
// launched command and timeouts, and exits cleanly. Runs on one thread (run). The link thread and the worker only read
// shared state, under short locks.
#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "agent/capture/capturing_sink.h"
#include "agent/commands.h"
#include "agent/control/launch.h"
#include "agent/control/module_transfer.h"
#include "agent/control/output.h"
#include "agent/control/sched_sink.h"
#include "agent/control/worker.h"
#include "agent/health/reporter.h"
#include "agent/link/link.h"
#include "agent/options.h"
#include "agent/process/named_processes.h"
#include "agent/recording/recorder.h"
#include "base/fd.h"
#include "secure/pairing_key.h"

namespace flamewire::agent {

class RecordingController final : private Control {
public:
    // `command` is the launched child of `-- CMD`, waiting to exec, or null. `signals` is a signalfd of SIGINT,
    // SIGTERM, SIGHUP and SIGCHLD, which are blocked.
    // `pairing`: the key that encrypts the link; required with --listen.
    RecordingController(Options options, std::optional<secure::PairingKey> pairing, LaunchedCommand* command,
                        UniqueFd signals);
    ~RecordingController() override;

    // Runs until the end. Returns the exit code of the program.
    int run();

private:
    StatusReport status() override;
    Capabilities capabilities() override;
    Result<Running> start(const StartRequest& request) override;
    Result<Running> start_requested(const StartRequest& request);
    Result<Running> stop() override;
    Result<Running> pause() override;
    Result<Running> resume() override;
    Result<std::optional<Running>> configure(const SettingsChange& change) override;
    Result<Running> count_by(CountBy by) override;
    Result<bool> resolve_kernel() override;
    HealthSettings configure_metrics(const HealthChange& change) override;
    std::vector<ProcessEntry> list_processes() override;
    ProcessCheck verify_pid(std::uint32_t pid) override;
    Result<Capabilities> reprobe() override;

    Result<bool> start_link();
    wire::Hello hello();
    void start_health();
    std::optional<OwnState> read_own_state();
    void take_command(wire::Command command);
    void handle_commands();
    void send_module(const wire::Command& command);

    Result<bool> start_target();
    Result<bool> start_command();
    void find_named_processes();
    void follow_name();
    Result<Running> record(RecordingTarget target, Settings settings, RequestedEvents wanted);
    Result<Environment> begin_capture(const RecordingPlan& plan, const Capabilities& capabilities, BatchSink*& sink);
    void end_capture();
    void end_recording(std::string reason, std::int32_t exit_code);
    void log_end(const Recorder& recorder, const Ended& ended) const;
    void print_counters(const Recorder& recorder) const;

    void wait();
    void handle_signals();
    // Quits if the launched command has exited, or if the recording has ended after a signal.
    void check_end();
    void check_recording();
    void check_clock();
    void finish();
    void quit(int exit_code);
    void fail_with(const Error& error);

    [[nodiscard]] std::shared_ptr<Recorder> recorder() const;
    // What works on this machine, including kernel symbol names, which do not depend on perf.
    [[nodiscard]] Capabilities probe() const;
    // The current capabilities, for opening events: sysctls can change while the agent runs.
    [[nodiscard]] Capabilities capabilities_now() const;
    [[nodiscard]] std::optional<Error> problem_of(const std::vector<std::uint32_t>& pids) const;
    // Also reports targets that a server may not choose.
    [[nodiscard]] std::optional<Error> problem_for_server(const std::vector<std::uint32_t>& pids) const;
    [[nodiscard]] Result<RecordingTarget> wide_for_server(const WideTarget& wide) const;

    Options options_;
    std::optional<secure::PairingKey> pairing_;
    LaunchedCommand* command_;
    UniqueFd signals_, wake_;
    Machine machine_ = describe_machine();
    Sysfs sysfs_ = real_sysfs();
    ResidentMemory memory_;
    std::string agent_id_;
    Settings settings_;  // of the next start; set by run()'s thread, read by the worker under mutex_
    AllowedProcesses allowed_;
    RequestedEvents first_requested_;  // of settings_, for the target of the command line

    std::optional<FileSink> file_;
    NoSink no_sink_;
    std::optional<SchedSink> sched_sink_;
    std::unique_ptr<Link> link_;
    std::atomic<Link*> link_ready_{nullptr};
    std::optional<LinkSink> link_sink_;
    std::unique_ptr<Capture> capture_;  // of the first recording, while it runs
    std::optional<CapturingSink> capturing_sink_;

    ModuleTransfers modules_;
    std::optional<std::uint64_t> output_ends_ns_;
    std::optional<NamedProcesses> named_;  // target of the current or next recording
    bool named_by_server_ = false;
    bool waiting_for_name_ = false;  // to start the recording
    std::uint64_t next_poll_ns_ = 0;
    std::optional<int> exit_code_;
    std::uint64_t signalled_ns_ = 0;  // when the first signal had been handled; 0: none
    bool command_gone_ = false;

    mutable std::mutex mutex_;
    std::shared_ptr<Recorder> recorder_;  // running, or the last one
    bool recording_ = false;
    Capabilities capabilities_;
    std::deque<wire::Command> commands_;
    std::string waiting_for_;

    std::optional<HealthReporter> health_;
    Worker worker_;  // health_ and worker_ are last: their threads use everything above
};

}  // namespace flamewire::agent
