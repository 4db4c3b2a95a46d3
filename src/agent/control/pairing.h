// Gets the agent's pairing key from the command line, a file or the environment, or creates one. Overwrites every copy
// that others could read (ps, /proc/PID/environ, a launched command).
#pragma once

#include <optional>
#include <string>

#include "agent/options.h"
#include "base/result.h"
#include "secure/pairing_key.h"

namespace flamewire::agent {

inline constexpr const char* pairing_variable = "FLAMEWIRE_PAIR";

struct Pairing {
    std::optional<secure::PairingKey> key;  // empty: --server without a key, which requires --insecure
    std::string code_to_print;              // created here and not stored; empty: the peer already has it
};

// With --listen there is always a key: if none is given, creates one, and stores it in --pair-file if that file does
// not exist yet. `argv` must be that of the process.
Result<Pairing> find_pairing(const Options& options, char** argv);

}  // namespace flamewire::agent
