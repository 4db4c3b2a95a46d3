// The process picker: running processes, with CPU % over a short interval.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.h"

namespace flamewire::agent {

struct ProcessEntry {
    std::uint32_t pid = 0;
    std::uint32_t ns_pid = 0;  // in the innermost pid namespace; 0 if it is in ours
    std::string user, comm, command_line, container_id;
    double cpu_percent = 0;
};

// Sorted by descending CPU % (of one CPU: four busy threads use 400), at most `limit` entries. Excludes kernel threads,
// zombies and the agent. Sleeps for `interval` between two scans. `user` is the effective one, as a number if
// /etc/passwd does not contain it.
std::vector<ProcessEntry> list_processes(std::chrono::milliseconds interval, std::size_t limit,
                                         const std::string& proc_root = "/proc",
                                         const std::string& passwd_path = "/etc/passwd");

// All processes in /proc, including kernel threads and the agent.
std::vector<std::uint32_t> list_pids(const std::string& proc_root = "/proc");

// Parses passwd(5) text into uid -> name. Does not use getpwuid, which loads plugins of the machine's libc: a static
// binary must not do that.
std::unordered_map<std::uint32_t, std::string> parse_passwd(std::string_view text);

struct ProcessIdentity {
    std::string comm, command_line;
};
// not_found if the process does not exist. If it cannot be inspected, because no more files may be open, the names are
// empty: the next open on it reports the error.
Result<ProcessIdentity> identify_process(std::uint32_t pid, const std::string& proc_root = "/proc");

// Whether the comm or the executable's file name of a process is one of `names`; false for kernel threads, zombies and the
// agent.
bool has_name(std::uint32_t pid, std::span<const std::string> names, const std::string& proc_root = "/proc");

}  // namespace flamewire::agent
