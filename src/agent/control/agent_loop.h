// Runs the agent: starts the link, handles signals, commands, the launched command and timeouts, and exits cleanly.
// Runs on one thread (run). The threads of the link, the worker and the health reporter only read shared state.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>

#include "agent/control/command_queue.h"
#include "agent/control/recording_controller.h"
#include "agent/control/server_control.h"
#include "agent/health/reporter.h"
#include "agent/link/link.h"
#include "base/fd.h"
#include "secure/pairing_key.h"

namespace flamewire::agent {

class AgentLoop {
public:
    // `command` is the launched child of `-- CMD`, waiting to exec, or null. `signals` is a signalfd of SIGINT,
    // SIGTERM, SIGHUP and SIGCHLD, which are blocked.
    // `pairing`: the key that encrypts the link; required with --listen.
    AgentLoop(Options options, std::optional<secure::PairingKey> pairing, LaunchedCommand* command, UniqueFd signals);
    ~AgentLoop();
    AgentLoop(const AgentLoop&) = delete;
    AgentLoop& operator=(const AgentLoop&) = delete;

    // Runs until the end. Returns the exit code of the program.
    int run();

private:
    Result<bool> start_link();
    wire::Hello hello();
    void start_health();
    std::optional<OwnState> read_own_state();

    void wait();
    void handle_signals();
    // Quits if the launched command has exited, or if the recording has ended after a signal.
    void check_end();
    void check_recording();
    void check_clock();
    void finish();
    void quit(int exit_code);
    void fail_with(const Error& error);

    Options options_;
    std::optional<secure::PairingKey> pairing_;
    LaunchedCommand* command_;
    UniqueFd signals_, wake_;
    Machine machine_ = describe_machine();
    ResidentMemory memory_;
    std::string agent_id_;
    std::optional<int> exit_code_;
    std::uint64_t signalled_ns_ = 0;  // when the first signal had been handled; 0: none

    std::unique_ptr<Link> link_;  // outlives the recordings, which send to it
    std::atomic<Link*> link_ready_{nullptr};
    RecordingController recordings_;
    std::optional<HealthReporter> health_;
    ServerControl control_;
    CommandQueue commands_;
};

}  // namespace flamewire::agent
