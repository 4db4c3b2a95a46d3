// Runs flamewire-agent to record on this machine.
#pragma once

#include <CLI/App.hpp>
#include <signal.h>
#include <sys/types.h>

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/fd.h"
#include "base/result.h"

namespace flamewire::cli {

// Path of the agent: FLAMEWIRE_AGENT, else the agent beside this program, else the agent in PATH.
Result<std::string> find_agent();

class AgentProcess {
public:
    enum class Output {
        ours,       // it shares our standard output and error
        to_errors,  // the standard output of the agent and of the command goes to our standard error
        quiet,      // its standard error is captured: words()
    };
    // The agent exits when this process ends for any reason.
    static Result<AgentProcess> start(const std::vector<std::string>& arguments, Output output = Output::ours);
    AgentProcess(AgentProcess&& other) noexcept
        : pid_(std::exchange(other.pid_, -1)), words_(std::move(other.words_)) {}
    AgentProcess& operator=(AgentProcess&&) = delete;
    ~AgentProcess();

    // The agent's exit code (128 + signal) once it has exited.
    [[nodiscard]] std::optional<int> ended();
    // Waits until the agent exits. Meanwhile, SIGTERM, SIGHUP and SIGINT to this program are forwarded to the agent.
    // Ctrl-C in a terminal reaches the agent directly.
    int wait();
    // While this exists, SIGTERM, SIGHUP and SIGINT to this program end the recording, not the program: as wait() does.
    class Forwarding {
    public:
        explicit Forwarding(const AgentProcess& agent);
        ~Forwarding();
        Forwarding(const Forwarding&) = delete;
        Forwarding& operator=(const Forwarding&) = delete;

    private:
        std::array<struct sigaction, 3> before_{};
    };
    // Asks the agent to end the recording (SIGTERM).
    void stop() const;
    [[nodiscard]] std::string words() const;

private:
    AgentProcess(pid_t pid, UniqueFd words) : pid_(pid), words_(std::move(words)) {}
    pid_t pid_ = -1;
    UniqueFd words_;
};

// Value of --duration for recordings that a signal ends: the longest, 31 days.
inline constexpr const char* until_stopped = "2678400";

// Options that record, stat, top and trace pass on to the agent, which validates them.
class AgentOptions {
public:
    // What the command does with events, which determines its options.
    enum class Use : std::uint8_t { count, sample, trace };
    void add(CLI::App& command, Use use);
    // The options as given. invalid: no target, or several.
    [[nodiscard]] Result<std::vector<std::string>> arguments() const;
    // -- CMD ARGS…; empty: none.
    [[nodiscard]] const std::vector<std::string>& command() const { return command_; }
    // Appends that command to the options, after --.
    void add_command(std::vector<std::string>& arguments) const;
    // The target in one word, for the name of a session.
    [[nodiscard]] std::string target() const;
    [[nodiscard]] bool gave(std::string_view option) const { return !value(option).empty(); }
    // --stat sched prints a separate table, which only `stat` supports.
    [[nodiscard]] bool sched() const { return value("--stat") == "sched"; }

private:
    struct Option {
        const char* name;
        std::string value;
    };
    [[nodiscard]] std::string_view value(std::string_view option) const;
    Use use_ = Use::count;
    std::vector<std::unique_ptr<Option>> options_;
    std::vector<std::string> command_;
    std::string pid_, cpus_, container_;
    std::vector<std::string> names_;
    std::vector<std::string> cgroups_;
    bool all_ = false;
    bool no_kernel_ = false, verbose_ = false;
};

}  // namespace flamewire::cli
