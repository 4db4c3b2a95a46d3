// The process picker: what runs here, with CPU % over a short interval.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.h"

namespace flamewire::agent {

struct ProcessEntry {
    std::uint32_t pid = 0;
    std::uint32_t ns_pid = 0;  // in the innermost pid namespace; 0 when there is only ours
    std::string user, comm, command_line, container_id;
    double cpu_percent = 0;
};

// By CPU % (of one CPU: four busy threads make 400) descending, at most `limit`; kernel threads, zombies and ourselves
// left out. Sleeps for `interval` between two looks. `user` is the effective one, as a number when /etc/passwd does not
// name it.
std::vector<ProcessEntry> list_processes(std::chrono::milliseconds interval, std::size_t limit,
                                         const std::string& proc_root = "/proc",
                                         const std::string& passwd_path = "/etc/passwd");

// All that /proc lists, kernel threads and ourselves too.
std::vector<std::uint32_t> list_pids(const std::string& proc_root = "/proc");

// uid -> name of passwd(5) text. Ours: getpwuid loads plugins of the machine's libc, which a static binary must not.
std::unordered_map<std::uint32_t, std::string> parse_passwd(std::string_view text);

struct ProcessIdentity {
    std::string comm, command_line;
};
// not_found when there is no such process. One that cannot be looked at, as no more files may be open, has no names:
// what is opened on it next says why.
Result<ProcessIdentity> identify_process(std::uint32_t pid, const std::string& proc_root = "/proc");

// Whether the comm or the executable's file name of a process equals `name`; not of a kernel thread, a zombie or ourselves.
bool has_name(std::uint32_t pid, const std::string& name, const std::string& proc_root = "/proc");

}  // namespace flamewire::agent
