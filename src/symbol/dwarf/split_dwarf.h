// Where the split DWARF of a program is: its .dwp, or a .dwo file for each unit. The 64-bit id that program and file
// have in common says which is the right one, whatever its name and place.
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

// What a program's unit says of the one that was split off it.
struct SplitName {
    std::uint64_t id = 0;
    std::string name;       // of the .dwo file, as the compiler was told
    std::string directory;  // where the compiler ran
};

class SplitDwarf {
public:
    // `files`: the program and its separate debug info; their .dwp is looked for beside them.
    SplitDwarf(const Config& config, std::vector<std::string> files);

    struct Opened {
        std::shared_ptr<ObjectFile> file;  // what the unit's bytes are of
        SplitUnit unit;
    };
    [[nodiscard]] std::optional<Opened> open(const SplitName& name) const;
    // Whether a file for it is there, which may still be of another build.
    [[nodiscard]] bool is_there(const SplitName& name) const;
    // Why the first of the files that were there and refused was; empty: none was.
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
