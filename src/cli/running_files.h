// Files that were deleted or replaced at their paths, but that running processes still map.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/fd.h"
#include "symbol/module_identity.h"

namespace flamewire::cli {

// An open file, which stays readable at `path` when its process ends.
struct RunningFile {
    UniqueFd file;
    std::string path;  // below /proc/self/fd, for symbol::Config::binaries
};

// For each of the modules that has a build-id, the file that a process of `pids` maps. Without root (or
// cap_checkpoint_restore) only the programs themselves are found, not libraries.
std::vector<RunningFile> running_files(std::span<const symbol::ModuleIdentity> modules,
                                       std::span<const std::uint32_t> pids);

}  // namespace flamewire::cli
