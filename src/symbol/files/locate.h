// Finds the files on this machine that hold the symbols of a module. Records every place that it checks, and rejects
// files of another build. If files are missing, the report states what to do. The order of places is in
// docs/symbols.md.
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
    std::optional<ObjectFile> debug;  // separate debug info, if it is better than `main`
    std::optional<ObjectFile> code;   // the file with the code, if `main` does not contain it
    bool fetched = false;             // an agent sent `main`: it has holes in place of the code
    std::string code_file;            // the path of the file with the code; empty if no file here has it
    ModuleReport report;
};

// For modules of kind `file`, and for the kernel's vmlinux (only by build-id).
ModuleFiles locate(const ModuleIdentity& module, const Config& config);

// `path` with the first matching map applied; empty if none matches. A map matches at component boundaries.
std::string apply_path_map(const PathMap& map, const std::string& path);

}  // namespace flamewire::symbol
