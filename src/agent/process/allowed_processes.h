// Which processes a server may have profiled: what somebody at the agent's own command line said, not what the server
// asks for. That command line's own target needs no permission.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace flamewire::agent {

// As the options have them; an empty list allows all. A process must fit each list that is not empty.
struct AllowedWords {
    std::vector<std::uint32_t> pids;
    std::vector<std::string> users;     // names or numbers
    std::vector<std::string> commands;  // with * and ?
    [[nodiscard]] bool all() const { return pids.empty() && users.empty() && commands.empty(); }
};

class AllowedProcesses {
public:
    AllowedProcesses() = default;  // all
    // not_found when a user is not known on this machine.
    static Result<AllowedProcesses> of(AllowedWords words, const std::string& passwd_path = "/etc/passwd");

    // Nothing: it may be profiled. Else one sentence. A process that has gone is nobody's: whoever opens it says so. One
    // that cannot be looked at is refused. The user is the effective one; a command is the file name of the executable,
    // or the comm where that cannot be read.
    [[nodiscard]] std::optional<Error> refusal(std::uint32_t pid, const std::string& proc_root = "/proc") const;

private:
    AllowedWords words_;
    std::vector<std::uint32_t> uids_;
};

}  // namespace flamewire::agent
