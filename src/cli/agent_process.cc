#include "cli/agent_process.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <string_view>

#include "base/file.h"

namespace flamewire::cli {
namespace {

constexpr const char* agent_name = "flamewire-agent";
constexpr std::array ending_signals{SIGINT, SIGTERM, SIGHUP};

volatile std::sig_atomic_t agent_pid = 0;

// The agent already has signals that come from the terminal.
void pass_on(int signal, siginfo_t* info, void*) {
    const bool by_terminal = info != nullptr && info->si_code == SI_KERNEL;
    if (agent_pid > 0 && !by_terminal) (void)::kill(agent_pid, signal);
}

bool is_program(const std::string& path) {
    return ::access(path.c_str(), X_OK) == 0 && !std::filesystem::is_directory(path);
}

int exit_code(int status) { return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status); }

}  // namespace

Result<std::string> find_agent() {
    if (const char* given = std::getenv("FLAMEWIRE_AGENT"); given != nullptr && given[0] != '\0') {
        if (is_program(given)) return given;
        return fail(ErrorCode::not_found, fmt::format("{} (from FLAMEWIRE_AGENT) is not an executable file", given));
    }
    std::error_code error;
    const auto own = std::filesystem::read_symlink("/proc/self/exe", error);
    if (std::string beside = (own.parent_path() / agent_name).string(); !error && is_program(beside)) return beside;
    const char* path = std::getenv("PATH");
    for (std::string_view rest = path == nullptr ? "" : path; !rest.empty();) {
        const std::size_t end = rest.find(':');
        std::string candidate = fmt::format("{}/{}", rest.substr(0, end), agent_name);
        if (candidate.starts_with('/') && is_program(candidate)) return candidate;
        rest = end == std::string_view::npos ? std::string_view{} : rest.substr(end + 1);
    }
    return fail(
        ErrorCode::not_found,
        fmt::format("there is no {} beside this program or in PATH: FLAMEWIRE_AGENT=FILE names it", agent_name));
}

Result<AgentProcess> AgentProcess::start(const std::vector<std::string>& arguments, Output output) {
    const std::string program = TRY(find_agent());
    UniqueFd words(output == Output::quiet ? ::memfd_create("agent", MFD_CLOEXEC) : -1);
    if (output == Output::quiet && !words) return fail_errno("cannot keep the output of the agent", errno);
    std::vector<char*> line{const_cast<char*>(agent_name)};
    for (const std::string& argument : arguments) line.push_back(const_cast<char*>(argument.c_str()));
    line.push_back(nullptr);
    const pid_t parent = ::getpid();
    const pid_t pid = ::fork();
    if (pid < 0) return fail_errno(fmt::format("cannot start {}", program), errno);
    if (pid == 0) {
        ::prctl(PR_SET_PDEATHSIG, SIGTERM);
        if (::getppid() != parent) ::_exit(1);
        std::signal(SIGPIPE, SIG_DFL);
        if (output == Output::to_errors) ::dup2(STDERR_FILENO, STDOUT_FILENO);
        if (output == Output::quiet) ::dup2(words.get(), STDERR_FILENO);
        ::execv(program.c_str(), line.data());
        ::_exit(126);
    }
    return AgentProcess(pid, std::move(words));
}

AgentProcess::~AgentProcess() {
    if (pid_ <= 0) return;
    stop();
    int status = 0;
    while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
}

std::optional<int> AgentProcess::ended() {
    int status = 0;
    if (pid_ <= 0 || ::waitpid(pid_, &status, WNOHANG) != pid_) return {};
    pid_ = -1;
    return exit_code(status);
}

AgentProcess::Forwarding::Forwarding(const AgentProcess& agent) {
    struct sigaction action{};
    action.sa_sigaction = pass_on;
    action.sa_flags = SA_SIGINFO | SA_RESTART;
    static_assert(std::tuple_size_v<decltype(before_)> == ending_signals.size());
    agent_pid = agent.pid_;
    for (std::size_t i = 0; i < ending_signals.size(); ++i) ::sigaction(ending_signals[i], &action, &before_[i]);
}

AgentProcess::Forwarding::~Forwarding() {
    agent_pid = 0;
    for (std::size_t i = 0; i < ending_signals.size(); ++i) ::sigaction(ending_signals[i], &before_[i], nullptr);
}

int AgentProcess::wait() {
    const Forwarding forwarding(*this);
    int status = 0;
    while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    pid_ = -1;
    return exit_code(status);
}

void AgentProcess::stop() const {
    if (pid_ > 0) (void)::kill(pid_, SIGTERM);
}

std::string AgentProcess::words() const {
    constexpr std::size_t most = 1 << 16;
    return words_ ? read_range(words_.get(), 0, most).value_or("") : std::string();
}

void AgentOptions::add(CLI::App& command, Use use) {
    use_ = use;
    const auto pass = [&](const char* names, const char* name, const char* help, const char* type) {
        options_.push_back(std::make_unique<Option>(Option{name, {}}));
        command.add_option(names, options_.back()->value, help)->type_name(type);
    };
    command.add_option("-p,--pid", pid_, "these processes and their children, separated by commas")->type_name("PID");
    command.add_option("--name", names_, "all processes of this name; waits until there is one; may be repeated")
        ->type_name("COMM")
        ->allow_extra_args(false);
    command.add_flag("-a,--all", all_, "the whole system");
    command.add_option("--cpus", cpus_, "what runs on these CPUs, as 0-3,6")->type_name("LIST");
    command.add_option("--cgroup", cgroups_, "what runs in a control group; may be repeated")
        ->type_name("PATH")
        ->allow_extra_args(false);
    command.add_option("--container", container_, "what runs in a container: its id or the id's beginning")
        ->type_name("ID");
    if (use == Use::trace) {
        pass("-e,--events", "--trace", "events to trace, in perf's syntax: sched:sched_switch", "LIST");
        pass("--first", "--trace-first", "keep only the first N hits", "N");
    }
    if (use == Use::sample) {
        pass("-F,--frequency", "--frequency", "samples per second of CPU time, per thread (99)", "HZ");
        pass("-c,--count", "--count", "a sample every N events instead", "N");
        pass("-e,--events", "--events", "events to sample, in perf's syntax (cycles)", "LIST");
        pass("--trace", "--trace", "events of which each hit is kept with its values", "LIST");
        pass("--trace-first", "--trace-first", "keep only the first N of these hits", "N");
    }
    if (use != Use::count) {
        pass("--filter", "--filter", "the kernel's filter for the tracepoints among them", "EXPR");
        pass("--unwind", "--unwind", "how stacks are found: auto, fp, dwarf, lbr or hybrid (auto)", "MODE");
        pass("--stack-size", "--stack-size", "copied with a sample in dwarf mode (16K)", "BYTES");
        pass("--max-depth", "--max-depth", "frames of a stack (1024)", "N");
        pass("--ring-pages", "--ring-pages", "pages of a sample buffer, a power of two (by rate and sample size)", "N");
        command.add_flag("--no-kernel", no_kernel_, "user space only");
    }
    if (use == Use::sample) pass("--stat", "--stat", "what is counted: events, default or none (default)", "LIST");
    if (use == Use::count)
        pass("--stat", "--stat",
             "what is counted: events or default (default), or sched: what threads do with their time", "LIST");
    pass("-d,--duration", "--duration", "seconds; a command: until it ends, others: 8", "SECONDS");
    pass("-D,--delay", "--delay", "start sampling this many milliseconds after the command", "MS");
    command.add_flag("-v,--verbose", verbose_, "log more");
    command.add_option("COMMAND", command_,
                       "what to run, with its arguments; -- before it, where it begins with a dash");
    command.positionals_at_end();
}

Result<std::vector<std::string>> AgentOptions::arguments() const {
    const bool wide = all_ || !cpus_.empty() || !cgroups_.empty() || !container_.empty();
    if (int{!pid_.empty()} + int{!names_.empty()} + int{!command_.empty()} + int{wide} != 1)
        return fail(ErrorCode::invalid,
                    "give one target: -- COMMAND, --pid PID, --name COMM, --all, --cgroup PATH or --container ID");
    if (use_ == Use::sample && sched())
        return fail(ErrorCode::invalid,
                    "--stat sched prints a table and records nothing: flamewire stat --stat sched, or record with "
                    "--events off-cpu for flamewire report --sched");
    std::vector<std::string> words;
    const auto add = [&](const char* name, const std::string& value) {
        if (!value.empty()) words.insert(words.end(), {name, value});
    };
    add("--pid", pid_);
    for (const std::string& name : names_) add("--name", name);
    if (all_) words.emplace_back("--all");
    add("--cpus", cpus_);
    for (const std::string& cgroup : cgroups_) words.insert(words.end(), {"--cgroup", cgroup});
    add("--container", container_);
    for (const auto& option : options_) add(option->name, option->value);
    if (no_kernel_) words.emplace_back("--no-kernel");
    if (verbose_) words.emplace_back("--verbose");
    return words;
}

std::string_view AgentOptions::value(std::string_view option) const {
    for (const auto& one : options_)
        if (one->name == option) return one->value;
    return {};
}

void AgentOptions::add_command(std::vector<std::string>& arguments) const {
    if (command_.empty()) return;
    arguments.emplace_back("--");
    arguments.insert(arguments.end(), command_.begin(), command_.end());
}

std::string AgentOptions::target() const {
    if (!command_.empty()) return std::filesystem::path(command_.front()).filename().string();
    if (!container_.empty()) return "container-" + container_;
    if (!cgroups_.empty()) return std::filesystem::path(cgroups_.front()).filename().string();
    if (!pid_.empty()) return "pid-" + pid_;
    return names_.empty() ? "system" : names_.front();
}

}  // namespace flamewire::cli
