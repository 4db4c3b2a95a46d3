// The process picker: what runs here, with CPU % over a short interval.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace flamewire::agent {

struct ProcessEntry {
    std::uint32_t pid = 0, ns_pid = 0;
    std::string user, comm, command_line, container_id;
    double cpu_percent = 0;
};

// By CPU % descending, at most `limit`, kernel threads and ourselves left out. Sleeps for `interval` between two looks.
std::vector<ProcessEntry> list_processes(std::chrono::milliseconds interval, std::size_t limit,
                                         const std::string& proc_root = "/proc");

struct ProcessIdentity {
    std::string comm, command_line;
};
// not_found when there is no such process.
Result<ProcessIdentity> identify_process(std::uint32_t pid, const std::string& proc_root = "/proc");

// Pids whose comm (or executable's file name) equals `name`, ourselves left out.
std::vector<std::uint32_t> find_by_name(const std::string& name, const std::string& proc_root = "/proc");

}  // namespace flamewire::agent
