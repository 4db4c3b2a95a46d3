// Where the agent's pairing key comes from: the command line, a file, the environment; or it is made here. What could be
// seen of it by others (ps, /proc/PID/environ, a launched command) is overwritten.
#pragma once

#include <optional>
#include <string>

#include "agent/options.h"
#include "base/result.h"
#include "secure/pairing_key.h"

namespace flamewire::agent {

inline constexpr const char* pairing_variable = "FLAMEWIRE_PAIR";

struct Pairing {
    std::optional<secure::PairingKey> key;  // none: --server without one, which takes --insecure
    std::string code_to_print;              // made here and written nowhere; empty: the other side has it already
};

// With --listen there is always a key: one that is not given is made, and kept in --pair-file where that names a file
// which is not there yet. `argv`: the process's own.
Result<Pairing> find_pairing(const Options& options, char** argv);

}  // namespace flamewire::agent
