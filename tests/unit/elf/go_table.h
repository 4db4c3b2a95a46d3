// A Go function table (.gopclntab), written field by field from Go's src/cmd/link/internal/ld/pcln.go.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace flamewire::elf {

struct GoTableShape {
    int version = 18;  // 2, 16, 18 or 20: the minor version of the first Go that writes it
    bool is_64 = true, big_endian = false;
    unsigned quantum = 1;
};

// Values, each with the number of addresses for which it holds.
using GoValues = std::vector<std::pair<int, unsigned>>;

struct GoTestFunction {
    std::uint64_t start = 0;
    std::string name{};
    GoValues depth{}, file{}, line{};
    std::vector<GoValues> further{};    // PCDATA; an empty one has the offset 0
    std::vector<std::uint32_t> data{};  // FUNCDATA
    unsigned flags = 0;
    bool has_unit = true;
};

struct GoTable {
    GoTableShape shape{};
    std::vector<GoTestFunction> functions{};
    std::uint64_t end = 0;  // of the last function
    std::uint64_t text_start = 0x401000;
    bool text_start_is_in_the_file = true;
    std::vector<std::string> files{};  // of the only unit; an empty name is left out of the table
    std::vector<std::string> inlined_names{};

    std::map<std::string, std::uint32_t> name_offsets{};  // filled by bytes()

    [[nodiscard]] std::string number(std::uint64_t value, unsigned size) const {
        std::string out;
        for (unsigned i = 0; i < size; ++i)
            out.push_back(static_cast<char>(value >> 8 * (shape.big_endian ? size - 1 - i : i) & 0xff));
        return out;
    }
    [[nodiscard]] unsigned word_size() const { return shape.is_64 ? 8 : 4; }

    static std::string varint(std::uint32_t value) {
        std::string out;
        for (; value >= 0x80; value >>= 7) out.push_back(static_cast<char>(value | 0x80));
        out.push_back(static_cast<char>(value));
        return out;
    }
    [[nodiscard]] std::string encode(const GoValues& values) const {
        std::string out;
        int last = -1;
        for (const auto& [value, length] : values) {
            const int change = value - last;
            const auto bits = static_cast<std::uint32_t>(change);
            out += varint(change < 0 ? ~(bits << 1) : bits << 1) + varint(length / shape.quantum);
            last = value;
        }
        return out + '\0';
    }

    [[nodiscard]] std::string bytes() {
        name_offsets.clear();
        return shape.version == 2 ? bytes_of_1_2() : bytes_of_parts();
    }

private:
    [[nodiscard]] unsigned field_size() const { return shape.version >= 18 ? 4 : word_size(); }

    std::string header() const {
        const std::uint32_t magic = shape.version == 2    ? 0xfffffffb
                                    : shape.version == 16 ? 0xfffffffa
                                    : shape.version == 18 ? 0xfffffff0
                                                          : 0xfffffff1;
        std::string out = number(magic, 4) + std::string(2, '\0');
        out.push_back(static_cast<char>(shape.quantum));
        out.push_back(static_cast<char>(word_size()));
        return out + number(functions.size(), word_size());
    }

    // An entry and the offsets after it. `place` returns the offset of a list of values.
    template <class Place>
    std::string entry(const GoTestFunction& function, std::uint32_t name, const Place& place) const {
        std::string out = number(function.start - (shape.version >= 18 ? text_start : 0), field_size());
        out += number(name, 4) + number(0, 4) + number(0, 4);
        for (const GoValues& values : {function.depth, function.file, function.line}) out += number(place(values), 4);
        out += number(function.further.size(), 4);
        if (shape.version >= 16) out += number(function.has_unit ? 1 : 0xffffffff, 4);
        if (shape.version >= 20) out += number(7, 4);
        out.push_back(0);
        out.push_back(static_cast<char>(function.flags));
        out.push_back(0);
        out.push_back(static_cast<char>(function.data.size()));
        for (const GoValues& values : function.further) out += number(place(values), 4);
        for (const std::uint32_t offset : function.data) out += number(offset, 4);
        return out;
    }

    std::string bytes_of_parts() {
        std::string names(1, '\0'), units = number(0xffffffff, 4), file_names, values(1, '\0');
        for (const GoTestFunction& function : functions) add_name(names, 0, function.name);
        for (const std::string& name : inlined_names) add_name(names, 0, name);
        for (const std::string& file : files) {
            units += number(file.empty() ? 0xffffffff : file_names.size(), 4);
            if (!file.empty()) file_names += file + '\0';
        }
        const auto place = [&](const GoValues& of) -> std::size_t {
            if (of.empty()) return 0;
            values += encode(of);
            return values.size() - encode(of).size();
        };
        std::string index, entries;
        const std::size_t index_size = (2 * functions.size() + 1) * field_size();
        for (const GoTestFunction& function : functions) {
            index += number(function.start - (shape.version >= 18 ? text_start : 0), field_size());
            index += number(index_size + entries.size(), field_size());
            entries += entry(function, name_offsets[function.name], place);
        }
        index += number(end - (shape.version >= 18 ? text_start : 0), field_size());

        std::string out = header() + number(files.size(), word_size());
        if (shape.version >= 18) out += number(text_start_is_in_the_file ? text_start : 0, word_size());
        std::uint64_t at = out.size() + 5 * word_size();
        for (const std::string* part : {&names, &units, &file_names, &values}) {
            out += number(at, word_size());
            at += part->size();
        }
        return out + number(at, word_size()) + names + units + file_names + values + index + entries;
    }

    // All offsets are relative to the whole table.
    std::string bytes_of_1_2() {
        std::string out = header();
        const std::size_t index_at = out.size();
        out.resize(index_at + (2 * functions.size() + 1) * word_size() + 4, '\0');
        const auto place = [&](const GoValues& of) -> std::size_t {
            if (of.empty()) return 0;
            out += encode(of);
            return out.size() - encode(of).size();
        };
        std::string index;
        for (const GoTestFunction& function : functions) {
            add_name(out, 0, function.name);
            const std::string bytes = entry(function, name_offsets[function.name], place);
            index += number(function.start, word_size()) + number(out.size(), word_size());
            out += bytes;
        }
        std::vector<std::size_t> offsets;
        for (const std::string& file : files) {
            offsets.push_back(out.size());
            out += file + '\0';
        }
        index += number(end, word_size()) + number(out.size(), 4);
        out.replace(index_at, index.size(), index);
        out += number(files.size() + 1, 4);
        for (const std::size_t offset : offsets) out += number(offset, 4);
        return out;
    }

    void add_name(std::string& names, std::size_t start, const std::string& name) {
        if (!name_offsets.try_emplace(name, static_cast<std::uint32_t>(names.size() - start)).second) return;
        names += name + '\0';
    }
};

// Two functions in the form that Go writes: main.(*T).Method at text_start + 0x20, followed by main.main.
inline GoTable small_go_table(GoTableShape shape) {
    const unsigned q = shape.quantum;
    GoTable table{.shape = shape};
    table.functions = {
        {.start = 0x401020,
         .name = "main.(*T).Method",
         .depth = {{0, 4 * q}, {24, 24 * q}, {0, 4 * q}},
         .file = {{1, 32 * q}},
         .line = {{10, 8 * q}, {300, 8 * q}, {11, 16 * q}},
         .further = {{}, {{-2, 4 * q}, {5, 28 * q}}}},
        {.start = 0x401020 + 32 * q,
         .name = "main.main",
         .depth = {{0, 200 * q}},
         .file = {{2, 200 * q}},
         .line = {{20, 200 * q}},
         .data = {0xffffffff, 8},
         .flags = shape.version >= 16 ? 3u : 0u},
    };
    table.end = 0x401020 + 232 * q;
    table.files = {"/src/a.go", "/src/b.go", "/src/c.go"};
    return table;
}

}  // namespace flamewire::elf
