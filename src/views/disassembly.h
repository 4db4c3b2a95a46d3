// The machine code of one function with the weight of every instruction. In steps, so that files are read without
// holding the store.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "profile/query/code_heat.h"
#include "profile/store/store.h"
#include "symbol/disassembly/disassembly.h"
#include "symbol/symbolizer.h"

namespace flamewire::views {

// Selects code by function and perhaps module, by file and line, or by module and address.
struct CodeQuery {
    std::string function, module, file;
    std::uint32_t line = 0;
    std::optional<std::uint64_t> address;   // in `module`
    std::optional<std::uint64_t> at, from;  // one of several copies; a part of a long function
};

struct CodePlaces {
    struct Module {
        symbol::ModuleIdentity identity;
        std::string name;
    };
    std::vector<profile::CodePlace> places;
    std::map<profile::ModuleId, Module> modules;
};

// A function's code in one module. The user selects one if there are several (clones, cold parts, several modules).
struct CodeCopy {
    profile::ModuleId module = 0;
    symbol::FunctionRange range;
    bool named = true;    // a symbol defines where it begins and ends
    bool inlined = true;  // the requested function or line occurs here only inlined
    profile::Weight self, total;

    [[nodiscard]] bool contains(std::uint64_t address) const {
        return address >= range.start && address - range.start < range.size;
    }
};

using CodeHeat = std::map<profile::ModuleId, std::vector<profile::AddressRow>>;

struct Disassembly {
    std::vector<CodeCopy> copies;  // by weight, descending
    std::size_t chosen = 0;
    // Of the chosen copy:
    std::string file, problem, remedy, note;
    std::uint16_t machine = 0;          // e_machine
    std::uint64_t first = 0, next = 0;  // where the part before and the part after the shown one begin; 0: none
    std::vector<symbol::Instruction> instructions;
    // Of each instruction. `target`: index of the instruction that is jumped to; -1: none, or not among those shown.
    std::vector<profile::Weight> self, total;
    std::vector<std::int64_t> target;
    std::vector<std::uint32_t> target_name, place;   // into strings and places
    std::vector<std::vector<std::uint32_t>> places;  // function, file, line of each frame, innermost first
    std::vector<std::string> strings;                // without duplicates; [0] is empty
};

// From the store.
CodePlaces find_code(const profile::Store& store, const CodeQuery& query);
// Reads files.
std::vector<CodeCopy> copies_of(const CodePlaces& code, symbol::Symbolizer& symbolizer);
// From the store.
CodeHeat heat_of(const profile::Store& store, const profile::Filter& filter, const std::vector<CodeCopy>& copies);
// Reads files. `copies` must not be empty.
Disassembly disassemble(const CodePlaces& places, std::vector<CodeCopy> copies, const CodeHeat& heat,
                        const CodeQuery& query, symbol::Symbolizer& symbolizer);

}  // namespace flamewire::views
