// flamewire-agent, started by us to record on this machine.
#pragma once

#include <CLI/App.hpp>
#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/fd.h"
#include "base/result.h"

namespace flamewire::cli {

// FLAMEWIRE_AGENT, else the one beside this program, else the one in PATH.
Result<std::string> find_agent();

class AgentProcess {
public:
    enum class Output {
        ours,       // it prints where we do
        to_errors,  // its standard output, and that of the command, is our standard error
        quiet,      // what it says is kept: words()
    };
    // It ends when we do, however that is.
    static Result<AgentProcess> start(const std::vector<std::string>& arguments, Output output = Output::ours);
    AgentProcess(AgentProcess&& other) noexcept
        : pid_(std::exchange(other.pid_, -1)), words_(std::move(other.words_)) {}
    AgentProcess& operator=(AgentProcess&&) = delete;
    ~AgentProcess();

    // Its exit code (128 + signal), once it has ended.
    [[nodiscard]] std::optional<int> ended();
    // Until it ends. A SIGTERM, SIGHUP or SIGINT to this program is one for the agent meanwhile; Ctrl-C in a terminal
    // reaches it anyway.
    int wait();
    // Asks it to end the recording.
    void stop() const;
    [[nodiscard]] std::string words() const;

private:
    AgentProcess(pid_t pid, UniqueFd words) : pid_(pid), words_(std::move(words)) {}
    pid_t pid_ = -1;
    UniqueFd words_;
};

// What record, stat and top pass on to the agent; it checks them.
class AgentOptions {
public:
    // `sampling`: also how to sample.
    void add(CLI::App& command, bool sampling);
    // The options as they were given. invalid: no target, or several.
    [[nodiscard]] Result<std::vector<std::string>> arguments() const;
    // -- CMD ARGS…; empty: none.
    [[nodiscard]] const std::vector<std::string>& command() const { return command_; }
    // What is profiled, in a word: for the name of a session.
    [[nodiscard]] std::string target() const;
    [[nodiscard]] bool gave(std::string_view option) const { return !value(option).empty(); }
    // --stat sched: a table of its own, which only `stat` prints.
    [[nodiscard]] bool sched() const { return value("--stat") == "sched"; }

private:
    struct Option {
        const char* name;
        std::string value;
    };
    [[nodiscard]] std::string_view value(std::string_view option) const;
    bool sampling_ = false;
    std::vector<std::unique_ptr<Option>> options_;
    std::vector<std::string> command_;
    std::string pid_, name_, cpus_, container_;
    std::vector<std::string> cgroups_;
    bool all_ = false;
    bool no_kernel_ = false, verbose_ = false;
};

}  // namespace flamewire::cli
