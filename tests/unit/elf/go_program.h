// A small ELF program of Go: headers, code, function table (go_table.h), moduledata and the tree of inlined calls.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "go_table.h"

namespace flamewire::elf {

// moduledata, word by word from src/runtime/symtab.go. Words that the reader ignores have values that fit nothing.
inline std::string go_module_data(const GoTable& table, std::uint64_t header, std::uint64_t function_data) {
    std::vector<std::uint64_t> words;
    for (std::uint64_t i = 0; i < 48; ++i) words.push_back(0x9000 + i);
    words[0] = header;
    words[16] = words[13];
    words[17] = words[18] = table.functions.size() + 1;
    words[20] = 0x401020;
    words[21] = table.end;
    words[22] = 0x401000;
    words[table.shape.version == 18 ? 38 : 40] = function_data;
    std::string out;
    for (const std::uint64_t word : words) out += table.number(word, table.word_size());
    return out;
}

// An entry in the tree of inlined calls, in the formats of Go 1.18 and 1.20.
inline std::string go_inlined_call(const GoTable& table, int parent, const std::string& name, std::uint64_t caller) {
    const std::uint64_t name_offset = table.name_offsets.at(name);
    if (table.shape.version >= 20)
        return table.number(0, 4) + table.number(name_offset, 4) + table.number(caller, 4) + table.number(99, 4);
    return table.number(static_cast<std::uint16_t>(parent), 2) + std::string(2, '\0') + table.number(77, 4) +
           table.number(88, 4) + table.number(name_offset, 4) + table.number(caller, 4);
}

struct GoTestSection {
    std::string name{};
    std::uint32_t type = 1;
    std::uint64_t flags = 2, address = 0;
    std::string bytes{};
};

inline std::string go_elf_file(const GoTable& table, std::vector<GoTestSection> sections) {
    const unsigned word = table.word_size();
    const auto number = [&](std::uint64_t value, unsigned size) { return table.number(value, size); };
    sections.insert(sections.begin(), GoTestSection{.type = 0, .flags = 0});
    sections.push_back({.name = ".shstrtab", .type = 3, .flags = 0});
    std::string names;
    for (const GoTestSection& section : sections) names += section.name + '\0';
    sections.back().bytes = names;

    const std::size_t header_bytes = table.shape.is_64 ? 64 : 52;
    std::string contents, headers;
    std::size_t name = 0;
    for (const GoTestSection& section : sections) {
        headers += number(name, 4) + number(section.type, 4) + number(section.flags, word);
        headers += number(section.address, word) + number(header_bytes + contents.size(), word);
        headers += number(section.bytes.size(), word) + number(0, 4) + number(0, 4) + number(1, word) + number(0, word);
        contents += section.bytes;
        name += section.name.size() + 1;
    }
    std::string out = "\x7f";
    out += "ELF";
    out.push_back(table.shape.is_64 ? 2 : 1);
    out.push_back(table.shape.big_endian ? 2 : 1);
    out.push_back(1);
    out.resize(16, '\0');
    out += number(2, 2) + number(62, 2) + number(1, 4) + number(0x401020, word) + number(0, word);
    out += number(header_bytes + contents.size(), word) + number(0, 4) + number(header_bytes, 2) + number(0, 2);
    out += number(0, 2) + number(table.shape.is_64 ? 64 : 40, 2) + number(sections.size(), 2);
    return out + number(sections.size() - 1, 2) + contents + headers;
}

// main.(*T).Method has main.a inlined 4 instructions after its start, and main.b inlined into that at 12.
inline GoTable go_table_with_inlined_calls(GoTableShape shape) {
    const unsigned q = shape.quantum;
    GoTable table = small_go_table(shape);
    table.inlined_names = {"main.a", "main.b"};
    table.functions[0].further = {{}, {}, {{-1, 4 * q}, {0, 8 * q}, {1, 8 * q}, {-1, 4 * q}, {7, 4 * q}, {-1, 4 * q}}};
    table.functions[0].data = {0xffffffff, 0, 4, 8};
    table.functions[1].further = {{}, {}, {{0, 200 * q}}};
    table.functions[1].data = {0, 0, 0, 0xffffffff};
    return table;
}

// Its go:func.*. Call it after table.bytes(), which defines the offsets of names.
inline std::string go_function_data(const GoTable& table) {
    return "unused.." + go_inlined_call(table, -1, "main.a", 2) + go_inlined_call(table, 0, "main.b", 9);
}

inline std::string go_program(GoTable table) {
    const std::string bytes = table.bytes();
    return go_elf_file(table, {{".text", 1, 6, 0x401000, std::string(0x200, '\x90')},
                               {".gopclntab", 1, 2, 0x500020, bytes},
                               {".rodata", 1, 2, 0x480000, "....." + go_function_data(table)},
                               {".noptrdata", 1, 3, 0x600000, go_module_data(table, 0x500020, 0x480005)}});
}

}  // namespace flamewire::elf
