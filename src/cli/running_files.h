// Files that are not at their paths any more, deleted or replaced, but that running processes still map.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "symbol/module_identity.h"

namespace flamewire::cli {

// For each module that a process of `pids` maps, and that has a build-id, a path below /proc to its file; for
// symbol::Config::binaries. The paths are valid while the processes live. Without root only the programs themselves are
// found, not libraries.
std::vector<std::string> running_files(std::span<const symbol::ModuleIdentity> modules,
                                       std::span<const std::uint32_t> pids);

}  // namespace flamewire::cli
