// Drops privileges that the agent no longer needs. It receives commands from a network, so an exploited bug should give
// an attacker as little as possible. Call these functions while there is only one thread; threads inherit the result.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"

namespace flamewire::agent {

// Privileges that are still needed in addition to sampling.
struct Needs {
    bool low_port = false;       // to listen on a port below 1024
    bool signal_others = false;  // to end a launched command that may have become another user
};

// Keeps only the capabilities that sampling uses: cap_perfmon (cap_sys_admin if the kernel lacks it), cap_sys_ptrace,
// cap_syslog, cap_checkpoint_restore, cap_ipc_lock and cap_dac_read_search. Returns their numbers as bits, for tests.
Result<std::uint64_t> drop_capabilities(const Needs& needs);

// From now on, system calls that the agent does not use fail with ENOSYS. System calls that only an attacker would use
// (programs and processes, other processes' memory, mounts, modules, namespaces, users) kill the agent (SIGSYS).
// unsupported: the kernel has no seccomp filters.
Result<bool> restrict_system_calls();

}  // namespace flamewire::agent
