// Where a Symbolizer searches for files, and how it converts names.
#pragma once

#include <string>
#include <vector>

namespace flamewire::symbol {

struct PathMap {
    std::string from, to;
};

// A linker map for the module of that name or path. If `module` is empty, for the module that the map's own file name
// or its OUTPUT names.
struct MapFile {
    std::string module, file;
};

struct Config {
    std::vector<std::string> binaries;  // --binary: unstripped files, matched by build-id, else by file name
    std::string sysroot;
    std::vector<PathMap> path_maps;
    std::vector<MapFile> maps;         // --map: for modules that have no symbol table
    std::string module_directory;      // files from agents, by fetched_path(); empty: none
    std::string upload_directory;      // files from people, named in the same way; empty: none
    std::string debuginfod_directory;  // files from debuginfod servers (debuginfod.h); empty: none
    std::vector<std::string> debug_directories = {"/usr/lib/debug"};
    bool inlines = true;   // else one frame per address: the linker's function, at the line of its outermost call
    bool demangle = true;  // else linker names, for comparison with other tools
};

}  // namespace flamewire::symbol
