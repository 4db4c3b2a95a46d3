// Which files on this machine hold the symbols of a module. Every place looked at is recorded, a file of another build
// is refused, and what is missing is said with what to do about it. The order of places is in docs/symbols.md.
#pragma once

#include <optional>
#include <string>

#include "symbol/files/object_file.h"
#include "symbol/types/config.h"
#include "symbol/types/module_identity.h"
#include "symbol/types/module_report.h"

namespace flamewire::symbol {

struct ModuleFiles {
    std::optional<ObjectFile> main;   // the module itself
    std::optional<ObjectFile> debug;  // separate debug info, when it is better than `main`
    std::optional<ObjectFile> code;   // where the code is, when it is not in `main`
    bool fetched = false;             // `main` is what an agent sent: it has holes where the code was
    std::string code_file;            // the path of what holds the code; empty: no file here does
    ModuleReport report;
};

// For modules of kind `file`, and for the kernel's vmlinux (only by build-id).
ModuleFiles locate(const ModuleIdentity& module, const Config& config);

// `path` with the first matching map applied; empty when none matches. A map matches at component boundaries.
std::string apply_path_map(const PathMap& map, const std::string& path);

}  // namespace flamewire::symbol
