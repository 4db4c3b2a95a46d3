// Finds files that were deleted or replaced at their paths: those that running processes still map, and the file of a
// command.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/fd.h"
#include "symbol/types/module_identity.h"

namespace flamewire::cli {

// An open file. It stays readable at `path` after its process exits.
struct RunningFile {
    UniqueFd file;
    std::string path;  // below /proc/self/fd, for symbol::Config::binaries
};

// Open this before the command runs, because the command can delete or replace its own file. Empty: no such file, or
// not readable.
std::optional<RunningFile> file_of_command(const std::string& name);

// For each module with a build-id: the file that a process of `pids` maps, or the command's file. Without root (or
// CAP_CHECKPOINT_RESTORE), only executables of processes are found, not libraries.
std::vector<RunningFile> running_files(std::span<const symbol::ModuleIdentity> modules,
                                       std::span<const std::uint32_t> pids, std::optional<RunningFile> command);

}  // namespace flamewire::cli
