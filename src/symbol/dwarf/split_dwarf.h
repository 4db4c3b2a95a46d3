// Finds the split DWARF of a program: its .dwp, or a .dwo file for each unit. The program and the file share a 64-bit
// id. Only this id identifies the right file, not its name or place.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "symbol/dwarf/split_unit.h"
#include "symbol/files/object_file.h"
#include "symbol/types/config.h"

namespace flamewire::symbol {

// What a program's unit states about its split unit.
struct SplitName {
    std::uint64_t id = 0;
    std::string name;       // of the .dwo file, as given to the compiler
    std::string directory;  // the compilation directory
};

class SplitDwarf {
public:
    // `files`: the program and its separate debug info. Searches for .dwp files beside them and among the given
    // binaries.
    SplitDwarf(const Config& config, std::vector<std::string> files);

    struct Opened {
        std::shared_ptr<ObjectFile> file;  // owns the unit's bytes
        SplitUnit unit;
    };
    [[nodiscard]] std::optional<Opened> open(const SplitName& name) const;
    // Whether a file for it exists. The file may still be of another build.
    [[nodiscard]] bool is_there(const SplitName& name) const;
    // Why the first rejected file was rejected; empty if none was.
    [[nodiscard]] const std::string& refused() const { return refused_; }

private:
    struct Package {
        std::shared_ptr<ObjectFile> file;
        Bytes index;
        SplitSections sections;
    };
    [[nodiscard]] std::shared_ptr<ObjectFile> open_file(const std::string& path) const;
    [[nodiscard]] std::vector<std::string> places(const SplitName& name) const;

    std::vector<std::string> files_, binaries_;
    std::vector<PathMap> path_maps_;
    std::string sysroot_;
    std::vector<Package> packages_;
    mutable std::string refused_;
};

}  // namespace flamewire::symbol
