// Finds and reads the linker map of a module.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "symbol/files/linker_map.h"
#include "symbol/types/config.h"
#include "symbol/types/module_identity.h"

namespace flamewire::symbol {

struct FoundMap {
    std::string file;
    LinkerMap map;
};

// In this order: a map given for the module by name or path; one named like the module (app.map for app and for
// app.elf); one whose OUTPUT is a file of the module's name; FILE.map beside `file`. `file` is the module's file on
// this machine (empty if there is none).
std::optional<FoundMap> map_of(const ModuleIdentity& module, const std::string& file, std::span<const MapFile> maps);

// Reads the map at `path`. too_large: over 256 MiB.
Result<LinkerMap> read_linker_map(const std::string& path);

}  // namespace flamewire::symbol
