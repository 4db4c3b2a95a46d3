// The recordings of the agent, one at a time: starts them for the command line and for commands, follows --name, and
// ends them. Keeps what the next recording uses. More than 25 functions, because one mutex protects what other threads
// read: each of these values has a function to get and one to set it.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "agent/commands.h"
#include "agent/control/launch.h"
#include "agent/control/output.h"
#include "agent/control/recording_capture.h"
#include "agent/control/sched_sink.h"
#include "agent/options.h"
#include "agent/process/named_processes.h"
#include "agent/recording/probe_setup.h"
#include "agent/recording/recorder.h"

namespace flamewire::agent {

// Why these processes cannot be recorded.
std::optional<Error> problem_of(const std::vector<std::uint32_t>& pids);

// The name whose processes the current or next recording has.
struct FollowedName {
    NamedProcesses processes;
    bool by_server = false;
};

class RecordingController {
public:
    // `command` is the launched child of `-- CMD`, waiting to exec, or null. When a recording ends, `wake`, an eventfd,
    // is written. `on_start` is called after each start.
    RecordingController(const Options& options, const Machine& machine, std::string agent_id, LaunchedCommand* command,
                        int wake, std::function<void()> on_start);

    // Checks what the command line asks for. If that is not possible, logs the reason and returns an exit code.
    std::optional<int> prepare();
    void use_link(Link& link) { link_sink_.emplace(link); }

    // Starts the recording of the command line, or begins to wait for --name.
    Result<bool> start_target();
    Result<Running> record(RecordingTarget target, Settings settings, RequestedEvents wanted);
    // Creates the probes among the events and counters of `plan`, whose other members are set, and finds the addresses of
    // its breakpoints.
    Result<bool> prepare_probes(RecordingPlan& plan);
    // Whose files probes may be in. For a server, the policy applies.
    [[nodiscard]] ProbeTarget probe_target(std::vector<std::uint32_t> pids, const Scope& scope, bool by_server) const;
    // Measures them at the first call. Any thread.
    ProbeCosts probe_costs() { return probes_.costs(); }
    // Ends the current recording, with `reason` unless it has ended by itself, and logs the result.
    void end(std::string reason, std::int32_t exit_code);
    // Ends a recording that has ended by itself, and returns how.
    std::optional<Ended> take_ended();

    // Finds processes of --name when next_poll_ns() has passed. Fails if they cannot be recorded.
    Result<bool> poll_names();
    [[nodiscard]] std::optional<std::uint64_t> next_poll_ns() const;
    // Returns what was followed before.
    std::optional<FollowedName> follow(std::optional<FollowedName> name);
    void follow_nothing();

    // When the duration of --output is over.
    [[nodiscard]] std::optional<std::uint64_t> ends_ns() const { return ends_ns_; }
    [[nodiscard]] bool is_recording() const { return recording_; }
    [[nodiscard]] std::shared_ptr<Recorder> current() const { return recording_ ? recorder() : nullptr; }
    [[nodiscard]] LaunchedCommand* command() const { return command_; }
    // The launched command could not be run.
    [[nodiscard]] bool command_gone() const { return command_gone_; }
    [[nodiscard]] FileSink* file() { return file_ ? &*file_ : nullptr; }
    [[nodiscard]] const Sysfs& sysfs() const { return sysfs_; }
    [[nodiscard]] const AllowedProcesses& allowed() const { return allowed_; }
    void set_next(Settings settings, RequestedEvents wanted);

    // From any thread. recorder: running, or the last one.
    [[nodiscard]] std::shared_ptr<Recorder> recorder() const;
    [[nodiscard]] Settings settings() const;  // of the next start
    [[nodiscard]] Capabilities capabilities() const;
    void set_capabilities(Capabilities capabilities);
    [[nodiscard]] std::string waiting_for() const;

private:
    Result<bool> start_command();
    BatchSink& choose_sink();
    Result<bool> find_named();
    void follow_name();
    void add_breakpoints(std::vector<std::uint32_t> pids);
    void set_waiting_for(std::string name);

    const Options& options_;
    const Machine& machine_;
    std::string agent_id_;
    LaunchedCommand* command_;
    int wake_;
    std::function<void()> on_start_;
    Sysfs sysfs_ = real_sysfs();
    AllowedProcesses allowed_;
    RequestedEvents first_requested_;  // of settings_, for the target of the command line

    std::optional<FileSink> file_;
    NoSink no_sink_;
    std::optional<SchedSink> sched_sink_;
    std::optional<LinkSink> link_sink_;
    RecordingCapture capture_;
    ProbeSetup probes_;

    std::optional<std::uint64_t> ends_ns_;
    std::optional<FollowedName> followed_;
    bool waiting_for_name_ = false;  // to start the recording
    std::uint64_t next_poll_ns_ = 0;
    bool command_gone_ = false;

    mutable std::mutex mutex_;
    std::shared_ptr<Recorder> recorder_;
    bool recording_ = false;
    Settings settings_;
    Capabilities capabilities_;
    std::string waiting_for_;
};

}  // namespace flamewire::agent
