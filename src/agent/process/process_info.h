// Data of one process in /proc besides its maps: stat, status, cmdline, exe, cgroup. The parsers are pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "agent/process/process_table.h"
#include "base/result.h"

namespace flamewire::agent {

// /proc/PID/stat, proc(5). Times are in ticks of sysconf(_SC_CLK_TCK).
struct ProcStat {
    std::string comm;
    char state = '?';
    std::uint32_t parent_pid = 0;
    std::uint64_t flags = 0, user_ticks = 0, system_ticks = 0;
    std::uint64_t minor_faults = 0, major_faults = 0, threads = 0;
    std::uint64_t start_ticks = 0;                                                   // since boot
    [[nodiscard]] bool kernel_thread() const { return (flags & 0x0020'0000) != 0; }  // PF_KTHREAD
};
std::optional<ProcStat> parse_stat(std::string_view text);

// The two lines of /proc/PID/status that stat lacks.
struct ProcStatus {
    std::uint32_t effective_uid = 0;
    std::uint32_t namespace_pid = 0;  // in the innermost pid namespace; 0 if it is in ours
};
ProcStatus parse_status(std::string_view text);

// From /proc/PID/cgroup: the path that identifies a container, else that of the unified hierarchy unless it is "/",
// else another one; and the container that the path identifies (base/cgroup_path.h).
struct Cgroup {
    std::string path, container_id;
};
Cgroup parse_cgroup(std::string_view text);

// NUL-separated arguments as one line, control characters replaced, cut at 1,024 bytes.
std::string command_line_text(std::string_view raw);

std::uint64_t ticks_to_ns(std::uint64_t ticks);

Result<ProcStat> read_stat(const std::string& proc_root, std::uint32_t pid);
ProcStatus read_status(const std::string& proc_root, std::uint32_t pid);
Cgroup read_cgroup(const std::string& proc_root, std::uint32_t pid);
std::string read_command_line(const std::string& proc_root, std::uint32_t pid);
// The target of /proc/PID/exe, without " (deleted)"; empty if it is not readable.
std::string read_exe(const std::string& proc_root, std::uint32_t pid);
// Name of a thread; empty if it is gone.
std::string read_thread_comm(const std::string& proc_root, std::uint32_t pid, std::uint32_t tid);

// All of the above; unreadable parts are empty. exec_generation is 0.
ProcessInfo read_process_info(const std::string& proc_root, std::uint32_t pid, const ProcStat& stat);

}  // namespace flamewire::agent
