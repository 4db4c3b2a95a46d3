// flamewire-agent: parses the command line, forks the command to launch before any state of the agent can leak into it,
// and then runs an AgentLoop.
#include <fcntl.h>
#include <fmt/format.h>
#include <netdb.h>
#include <nss.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/control/agent_loop.h"
#include "agent/control/describe_events.h"
#include "agent/control/doctor.h"
#include "agent/control/launch.h"
#include "agent/control/pairing.h"
#include "agent/control/privileges.h"
#include "agent/log.h"
#include "agent/machine.h"
#include "agent/options.h"
#include "agent/version.h"
#include "base/file.h"

// Without memory a message cannot be formatted, so it is a constant.
[[noreturn]] static void out_of_memory() {
    constexpr std::string_view text =
        "flamewire-agent: out of memory: allow it more (ulimit -v, its memory cgroup), or let it use less "
        "(--ring-pages, --spool, --unwind-memory)\n";
    [[maybe_unused]] const auto written = ::write(STDERR_FILENO, text.data(), text.size());
    ::_exit(1);
}

// The default handler prints the demangled type of an uncaught exception, which adds 60 KB of demangler to a static
// program. Only libraries throw, if they get no memory or no thread.
namespace __gnu_cxx {
void __verbose_terminate_handler() { out_of_memory(); }
}  // namespace __gnu_cxx

namespace {

using namespace flamewire;
using namespace flamewire::agent;

void print(const std::string& text) { (void)write_all(STDOUT_FILENO, as_bytes_view(text)); }

// Occupies descriptors 0 to 2 if they are closed. Otherwise the next opened files would get these numbers, and log
// lines would go to a session file or to the launched command. An O_PATH descriptor rejects reads and writes like a
// closed one, and commands do not inherit it.
void hold_standard_files() {
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd)
        if (::fcntl(fd, F_GETFD) < 0) (void)::open("/", O_PATH | O_CLOEXEC);
}

// Returns a descriptor to poll for the signals that end the agent, and for the exit of the launched command.
UniqueFd signals_as_file() {
    sigset_t set;
    sigemptyset(&set);
    for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGCHLD}) sigaddset(&set, number);
    ::sigprocmask(SIG_BLOCK, &set, nullptr);
    return UniqueFd(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
}

// Call it while there is only one thread. If either step fails, the agent still works.
void give_up_privileges(const Options& options) {
    const Needs needs{.low_port = options.mode == Mode::listen && options.port < 1024,
                      .signal_others = !options.command.empty()};
    if (const auto kept = drop_capabilities(needs); !kept) log("all privileges are kept: {}", kept.error().message);
    if (!options.seccomp) return;
    if (const auto restricted = restrict_system_calls(); !restricted && is_verbose())
        log("system calls are not restricted: {}", restricted.error().message);
}

bool has_proc() {
    if (read_file("/proc/self/stat", 4096)) return true;
    log_line("/proc is not mounted, so no process can be profiled. Try: mount -t proc proc /proc");
    return false;
}

int examine() {
    if (!has_proc()) return 1;
    be_polite();
    const Diagnosis diagnosis = diagnose(describe_machine(), examine_machine(real_sysfs()).diagnostics);
    print(diagnosis.text);
    return diagnosis.healthy ? 0 : 1;
}

int describe(const Options& options) {
    const Sysfs sysfs = real_sysfs();
    const auto text = describe_events(options.describe, {options.pids, {}, false}, sysfs);
    if (text)
        print(*text);
    else
        log("--describe: {}", text.error().message);
    if (text) return 0;
    return text.error().code == ErrorCode::invalid ? 2 : 1;
}

int run(int argc, char** argv) {
    const std::vector<std::string> words(argv, argv + argc);
    auto line = parse_command_line(words, ::isatty(STDOUT_FILENO) == 1);
    if (!line) {
        log_line(line.error().message);
        return 2;
    }
    if (line->request == Request::doctor) return examine();
    if (line->request == Request::describe) return describe(line->options);
    if (line->request != Request::run) {
        print(line->request == Request::help ? help_text() : version_text());
        return 0;
    }
    set_verbose(line->options.verbose);
    auto pairing = find_pairing(line->options, argv);
    if (!pairing) {
        log_line(pairing.error().message);
        return pairing.error().code == ErrorCode::invalid ? 2 : 1;
    }
    if (!pairing->code_to_print.empty()) print("pairing code of this agent: " + pairing->code_to_print + "\n");
    if (!has_proc()) return 1;
    std::optional<LaunchedCommand> command;
    if (!line->options.command.empty()) {
        auto prepared = LaunchedCommand::prepare(line->options.command);
        if (!prepared) {
            log_line(prepared.error().message);
            return 1;
        }
        command.emplace(*std::move(prepared));
    }
    be_polite();
    // With a session file, the agent does not receive network input.
    if (line->options.mode != Mode::output) give_up_privileges(line->options);
    AgentLoop loop(std::move(line->options), std::move(pairing->key), command ? &*command : nullptr, signals_as_file());
    return loop.run();
}

}  // namespace

int main(int argc, char** argv) {
    hold_standard_files();
    std::set_new_handler(out_of_memory);
    // A static glibc would load the machine's NSS modules for host names. The two built-in ones are enough.
    __nss_configure_lookup("hosts", "files dns");
    return run(argc, argv);
}
