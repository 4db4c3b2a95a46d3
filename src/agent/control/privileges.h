// What the agent gives up once it needs it no more: it takes commands from a network, and whoever finds a mistake in it
// should find little else. Call these while there is one thread; threads inherit both.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"

namespace flamewire::agent {

// What is still needed beside sampling.
struct Needs {
    bool low_port = false;       // to listen on a port below 1024
    bool signal_others = false;  // to end a launched command that may have become another user
};

// Keeps of the capabilities those that sampling uses, and gives up the rest: cap_perfmon (cap_sys_admin where the kernel
// has no such thing), cap_sys_ptrace, cap_syslog, cap_checkpoint_restore, cap_ipc_lock and cap_dac_read_search. The answer
// has their numbers as bits, for tests.
Result<std::uint64_t> drop_capabilities(const Needs& needs);

// From now on a system call that this agent has no use for is refused (ENOSYS), and one that only an intruder has a use for
// (programs and processes, other processes' memory, mounts, modules, namespaces, users) ends the agent at once (SIGSYS).
// unsupported when the kernel has no seccomp filters.
Result<bool> restrict_system_calls();

}  // namespace flamewire::agent
