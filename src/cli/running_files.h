// Files that were deleted or replaced at their paths: those that running processes still map, and a command's own.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/fd.h"
#include "symbol/types/module_identity.h"

namespace flamewire::cli {

// An open file, which stays readable at `path` when its process ends.
struct RunningFile {
    UniqueFd file;
    std::string path;  // below /proc/self/fd, for symbol::Config::binaries
};

// Opened before the command runs, as it may delete or replace its own file. Nothing: no such file, or not readable.
std::optional<RunningFile> file_of_command(const std::string& name);

// For each of the modules that has a build-id, the file that a process of `pids` maps, or that the command had. Without
// root (or cap_checkpoint_restore) only the programs of processes are found, not libraries.
std::vector<RunningFile> running_files(std::span<const symbol::ModuleIdentity> modules,
                                       std::span<const std::uint32_t> pids, std::optional<RunningFile> command);

}  // namespace flamewire::cli
