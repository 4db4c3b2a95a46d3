// What people learn of a module's symbols.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace flamewire::symbol {

// From worst to best: a better file that is found later replaces a worse one.
enum class Quality : std::uint8_t { none, linker_map, dynamic_symbols, symbols, go_table, debug_info };

// Which of the places of docs/symbols.md a file was found at.
enum class FoundBy : std::uint8_t {
    nothing,
    uploaded,  // a person sent it for this module
    given,     // --binary
    path_map,
    sysroot,
    target_path,   // the path as the target sees it
    agent,         // the agent sent it
    debug_tree,    // by build-id below a debug directory
    debug_link,    // named by .gnu_debuglink
    debug_name,    // by the module's name where only debug files are
    kernel_place,  // where distributions put a vmlinux
    this_machine,  // the running kernel's own names, the vDSO of this process
    debuginfod,    // a debuginfod server sent it (the order of these is what kept symbols have on disk)
};

// What is known of a module's symbols, for people: which file, how good, why not better.
struct ModuleReport {
    Quality quality = Quality::none;
    std::string file;                                                  // used; empty when none
    std::string debug_file;                                            // separate debug info, when used
    FoundBy found = FoundBy::nothing, debug_found = FoundBy::nothing;  // of the two
    bool mismatch = false;                                             // a file was there, but of another build
    std::string map_file;                                              // linker map, when used
    std::string problem;             // one sentence ("build-id mismatch: …"); empty when all is well
    std::string remedy;              // what to configure; may be empty
    std::vector<std::string> tried;  // places looked at, in order
    bool kept = false;               // the names are those that the session kept; the files are of where it kept them
};

}  // namespace flamewire::symbol
