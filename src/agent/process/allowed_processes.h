// Which processes a server may profile, from the agent's own command line and not from the server's request. The target
// on that command line needs no permission.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace flamewire::agent {

// The values of the options. An empty list allows all; a process must match each list that is not empty.
struct AllowedWords {
    std::vector<std::uint32_t> pids;
    std::vector<std::string> users;     // names or numbers
    std::vector<std::string> commands;  // with * and ?
    [[nodiscard]] bool all() const { return pids.empty() && users.empty() && commands.empty(); }
};

class AllowedProcesses {
public:
    AllowedProcesses() = default;  // all
    // not_found if a user does not exist on this machine.
    static Result<AllowedProcesses> of(AllowedWords words, const std::string& passwd_path = "/etc/passwd");

    // Returns nothing if the process may be profiled, else one sentence. A process that does not exist is not refused:
    // opening it reports the error. A process that cannot be inspected is refused. The user is the effective one. The
    // command is the file name of the executable, or the comm if that is not readable.
    [[nodiscard]] std::optional<Error> refusal(std::uint32_t pid, const std::string& proc_root = "/proc") const;
    // Without those that are refused.
    [[nodiscard]] std::vector<std::uint32_t> among(std::vector<std::uint32_t> pids) const;

private:
    AllowedWords words_;
    std::vector<std::uint32_t> uids_;
};

}  // namespace flamewire::agent
