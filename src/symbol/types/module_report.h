// A report on a module's symbols, for people.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace flamewire::symbol {

// From worst to best. If a better file is found later, it replaces a worse one.
enum class Quality : std::uint8_t { none, linker_map, dynamic_symbols, symbols, go_table, debug_info };

// Where a file was found. The places are listed in docs/symbols.md.
enum class FoundBy : std::uint8_t {
    nothing,
    uploaded,  // a person uploaded it for this module
    given,     // --binary
    path_map,
    sysroot,
    target_path,   // the path as the target sees it
    agent,         // the agent sent it
    debug_tree,    // by build-id in a debug directory
    debug_link,    // named by .gnu_debuglink
    debug_name,    // by the module's name in a directory of debug files
    kernel_place,  // where distributions install a vmlinux
    this_machine,  // the running kernel's names, or the vDSO of this process
    debuginfod,    // a debuginfod server sent it (files with kept symbols store these numbers, so keep their order)
};

// The state of a module's symbols, for people: which file, its quality, and why it is not better.
struct ModuleReport {
    Quality quality = Quality::none;
    std::string file;                                                  // the file in use; empty if none
    std::string debug_file;                                            // separate debug info, if used
    FoundBy found = FoundBy::nothing, debug_found = FoundBy::nothing;  // of the two files
    bool mismatch = false;                                             // a file was found, but it is of another build
    std::string map_file;                                              // linker map, if used
    std::string problem;             // one sentence ("build-id mismatch: …"); empty if all is well
    std::string remedy;              // what to configure; may be empty
    std::vector<std::string> tried;  // places checked, in order
    bool from_cache = false;         // the session kept these names; the files are those of the machine that saved them
};

}  // namespace flamewire::symbol
