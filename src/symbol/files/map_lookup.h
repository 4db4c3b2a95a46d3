// Which of the given linker maps is a module's, read.
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

// In this order: a map given for the module by name or path, one named as the module is (app.map for app, and for
// app.elf), one whose OUTPUT is a file of the module's name, and FILE.map beside `file`, the module's on this machine
// (empty: it has none).
std::optional<FoundMap> map_of(const ModuleIdentity& module, const std::string& file, std::span<const MapFile> maps);

// The map at `path`; too_large over 256 MiB.
Result<LinkerMap> read_linker_map(const std::string& path);

}  // namespace flamewire::symbol
