// The agent's command line. Pure: words in, options or an error message out. Opens and looks up nothing. docs/agent.md
// is the full reference, help_text() the short one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "agent/health/settings.h"
#include "agent/process/allowed_processes.h"
#include "agent/process/control_groups.h"
#include "base/result.h"

namespace flamewire::agent {

enum class Mode { listen, server, output };

// How to sample. `start` and `configure` change these settings.
struct Settings {
    std::string events;               // perf's grammar, comma-separated; empty: the default event; "none": no sampling
    std::string filter;               // in the kernel's syntax, for tracepoints without their own filter; empty: none
    std::string stat = "default";     // counters: "default", "none" or the same grammar
    std::uint32_t frequency_hz = 99;  // used when period is 0
    bool frequency_given = false;     // on the command line; then also applies to faults, instead of their period
    std::uint64_t period = 0;
    std::uint64_t trace_first = 0;  // samples of traced events that are kept; 0: all
    std::uint32_t duration_s = 8;
    std::uint32_t interval_ms = 250;
    std::string unwind = "auto";
    std::uint32_t stack_bytes = 16'384;  // copied with a sample in dwarf mode; a multiple of 8
    std::uint32_t max_depth = 1'024;     // frames of a stack
    bool max_depth_given = false;        // by the user, who gets a notice if the kernel allows less
    std::uint64_t unwind_memory_bytes = std::uint64_t{32} << 20;  // tables and rules of unwinding
    bool kernel = true;
    [[nodiscard]] bool samples() const { return events != "none"; }
    bool operator==(const Settings&) const = default;
};

// Default with --output, where no viewer waits for batches. Batches four times as long need a seventh less space and
// cause fewer writes to a board's flash.
inline constexpr std::uint32_t file_interval_ms = 1'000;

namespace limits {
inline constexpr std::uint32_t max_frequency_hz = 100'000;
inline constexpr std::uint64_t max_period = std::uint64_t{1} << 62;  // the kernel rejects periods with the top bit set
inline constexpr std::uint64_t max_traced = 1'000'000'000;
inline constexpr std::uint32_t max_duration_s = 31 * 86'400;
inline constexpr std::uint32_t max_rounds = 1'000'000;
// Shorter intervals cost more than they are worth; with longer ones the page appears frozen.
inline constexpr std::uint32_t min_interval_ms = 10, max_interval_ms = 10'000;
inline constexpr std::uint32_t max_delay_ms = 3'600'000;
inline constexpr std::uint64_t min_spool_bytes = 64U << 10, max_spool_bytes = std::uint64_t{1} << 30;
inline constexpr std::uint64_t max_module_bytes = std::uint64_t{4} << 30;
inline constexpr std::uint32_t max_ring_pages = 16'384;
// The kernel requires less than 64 KiB and a multiple of 8 bytes.
inline constexpr std::uint64_t min_stack_bytes = 1'024, max_stack_bytes = 65'528;
inline constexpr std::uint32_t min_depth = 16, max_depth = 4'096;
inline constexpr std::uint32_t max_slowdown_percent = 10'000;
inline constexpr std::uint64_t min_unwind_mib = 4, max_unwind_mib = 1'024;
inline constexpr std::uint32_t max_pid = 4'194'304;  // PID_MAX_LIMIT of 64-bit kernels
inline constexpr std::size_t max_pids = 256;
inline constexpr std::uint32_t max_cpu = 65'535;
inline constexpr std::size_t max_cgroups = 64;  // each has events on each CPU
}  // namespace limits

struct Options {
    Mode mode = Mode::listen;
    std::string host;  // --server: to connect to; --listen: the address to bind
    std::uint16_t port = 9999;
    std::string pair, pair_file;  // a pairing code, or the file that contains it; at most one of them
    bool insecure = false;        // also allow connections without encryption and pairing code
    std::string output;           // --output: a path, or "-"
    bool force = false;           // replace an existing output file

    // At most one of these four is set.
    std::vector<std::uint32_t> pids;
    std::vector<std::string> names;
    std::vector<std::string> command;
    WideTarget wide;
    AllowedWords allowed;                                   // other processes that a server may choose
    bool allow_kprobes = false, allow_breakpoints = false;  // of a server

    Settings settings;
    HealthSettings health;
    bool duration_given = false;
    std::uint32_t rounds = 1;
    std::uint32_t delay_ms = 0;
    std::size_t spool_bytes = std::size_t{8} << 20;
    std::uint64_t module_cap_bytes = std::uint64_t{64} << 20;  // limit of a module file that a server lacks; 0: none
    std::uint32_t ring_pages = 0;                              // 0: from frequency and memory limits
    std::uint32_t max_slowdown_percent = 10;                   // by probes
    std::string capture;                                       // path of --capture; empty: no capture
    std::string describe;                                      // --describe: events; empty: none
    std::string trace;                                         // --trace; also at the end of Settings::events
    bool sched = false;                                        // --stat sched: print a table of thread states
    bool verbose = false;
    bool seccomp = true;

    // Print a table to standard output instead of writing a session.
    [[nodiscard]] bool prints_table() const { return output == "-" && (sched || !settings.samples()); }
    [[nodiscard]] bool has_target() const {
        return !pids.empty() || !names.empty() || !command.empty() || wide.given();
    }
};

enum class Request { run, help, version, doctor, describe };

struct CommandLine {
    Request request = Request::run;
    Options options;
};

// invalid: with the message to print; the caller exits with 2. Not reentrant (getopt).
Result<CommandLine> parse_command_line(const std::vector<std::string>& words, bool stdout_is_terminal);

std::string help_text();

}  // namespace flamewire::agent
