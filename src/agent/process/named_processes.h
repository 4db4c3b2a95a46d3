// The processes of a name, at one look after another.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace flamewire::agent {

class NamedProcesses {
public:
    explicit NamedProcesses(std::string name, std::string proc_root = "/proc")
        : name_(std::move(name)), proc_root_(std::move(proc_root)) {}

    [[nodiscard]] const std::string& name() const { return name_; }
    // Pids, ascending, of processes for which has_name() holds. A process that had another name at its first six looks is
    // checked at every tenth look only: processes seldom become another program late.
    std::vector<std::uint32_t> look();

private:
    struct Seen {
        std::uint64_t first_look = 0;
        std::uint64_t last_look = 0;
        bool has_name = false;
    };
    std::string name_;
    std::string proc_root_;
    std::uint64_t looks_ = 0;
    std::unordered_map<std::uint32_t, Seen> seen_;
};

}  // namespace flamewire::agent
