// Where a Symbolizer looks for files, and what it makes of their names.
#pragma once

#include <string>
#include <vector>

namespace flamewire::symbol {

struct PathMap {
    std::string from, to;
};

// A linker map for the module of that name or path; without one for the module that the map's own name or its OUTPUT
// says.
struct MapFile {
    std::string module, file;
};

struct Config {
    std::vector<std::string> binaries;  // --binary: unstripped files, matched by build-id, else by file name
    std::string sysroot;
    std::vector<PathMap> path_maps;
    std::vector<MapFile> maps;         // --map: for modules that have no symbol table
    std::string module_directory;      // files that agents sent, by fetched_path(); empty: none
    std::string upload_directory;      // files that people sent, named in the same way; empty: none
    std::string debuginfod_directory;  // what debuginfod servers sent (debuginfod.h); empty: none
    std::vector<std::string> debug_directories = {"/usr/lib/debug"};
    bool inlines =
        true;  // else one frame an address: the function that the linker knows, at the line of its outermost call
    bool demangle = true;  // else names as the linker has them, for comparing with other tools
};

}  // namespace flamewire::symbol
