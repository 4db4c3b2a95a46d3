// Repeatedly finds the processes with one of the given names.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace flamewire::agent {

class NamedProcesses {
public:
    explicit NamedProcesses(std::vector<std::string> names, std::string proc_root = "/proc")
        : names_(std::move(names)), proc_root_(std::move(proc_root)) {}

    [[nodiscard]] std::string text() const;  // "a or b"
    // Pids, ascending, of processes for which has_name() holds. A process that had another name in its first six scans
    // is checked in every tenth scan only: processes seldom become another program late.
    std::vector<std::uint32_t> scan();

private:
    struct Seen {
        std::uint64_t first_scan = 0;
        std::uint64_t last_scan = 0;
        bool has_name = false;
    };
    std::vector<std::string> names_;
    std::string proc_root_;
    std::uint64_t scans_ = 0;
    std::unordered_map<std::uint32_t, Seen> seen_;
};

}  // namespace flamewire::agent
