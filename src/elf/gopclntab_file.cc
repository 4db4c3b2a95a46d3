#include "elf/gopclntab_file.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>
#include <utility>

namespace flamewire::elf {
namespace {

constexpr std::uint16_t type_dynamic = 3;                       // ET_DYN
constexpr std::uint32_t section_rela = 4, section_no_bits = 8;  // SHT_RELA, SHT_NOBITS
constexpr std::uint64_t table_alignment = 32;                   // of read-only data, in Go's linker
constexpr std::uint64_t max_scanned = std::uint64_t{64} << 20;  // bytes of .data.rel.ro and of relocations
constexpr std::uint64_t section_writable = 1;                   // SHF_WRITE
constexpr std::size_t max_pointers = 64;   // words that point to the table; a program has one or two
constexpr std::size_t max_candidates = 8;  // words that could be the start of moduledata
constexpr std::size_t chunk_bytes = std::size_t{64} << 10;

// R_*_RELATIVE: the word is the addend plus the address at which the file is loaded.
std::optional<std::uint32_t> relative_type(std::uint16_t machine) {
    switch (machine) {
        case 21:  // EM_PPC64
            return 22u;
        case 22:  // EM_S390
            return 12u;
        case 62:  // EM_X86_64
            return 8u;
        case 183:  // EM_AARCH64
            return 1027u;
        case 243:  // EM_RISCV
        case 258:  // EM_LOONGARCH
            return 3u;
        default: return std::nullopt;  // 32-bit Arm and x86 store the address in the word itself (REL)
    }
}

std::uint64_t number_at(std::string_view bytes, std::size_t offset, std::size_t size, bool big_endian) {
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < size; ++i)
        value = value << 8 | static_cast<std::uint8_t>(bytes[offset + (big_endian ? i : size - 1 - i)]);
    return value;
}

const Section* section_named(const std::vector<Section>& sections, std::string_view name) {
    const auto found = std::ranges::find_if(sections, [&](const Section& section) {
        return section.name == name && section.type != section_no_bits && section.size != 0;
    });
    return found == sections.end() ? nullptr : &*found;
}

GoPclntab::Reader reader_of(ByteSource source, std::uint64_t offset) {
    return [source = std::move(source), offset](std::uint64_t at, std::span<std::byte> out) {
        const auto bytes = source(offset + at, out.size());
        if (!bytes || bytes->size() != out.size()) return false;
        std::memcpy(out.data(), bytes->data(), out.size());
        return true;
    };
}

// Calls `visit` with blocks of whole records of `record` bytes and the offset of each block, until it returns false.
// `left` is the remaining read budget: in a damaged file, many sections can cover the same bytes.
template <class Visit>
void read_in_chunks(const ByteSource& source, std::uint64_t offset, std::uint64_t size, std::size_t record,
                    std::uint64_t& left, const Visit& visit) {
    const std::size_t step = chunk_bytes / record * record;
    for (std::uint64_t done = 0; done < size && left != 0; done += step) {
        const auto wanted = static_cast<std::size_t>(std::min<std::uint64_t>(step, size - done));
        left -= std::min<std::uint64_t>(left, wanted);
        const auto bytes = source(offset + done, wanted);
        if (!bytes || !visit(std::string_view(*bytes).substr(0, bytes->size() / record * record), offset + done))
            return;
        if (bytes->size() < wanted) return;
    }
}

// Calls `visit(address, addend)` for each relocation that adds the load address, until it returns false.
template <class Visit>
void each_relative(const ByteSource& source, const Header& header, const std::vector<Section>& sections,
                   const Visit& visit) {
    const auto type = relative_type(header.machine);
    if (header.type != type_dynamic || !type) return;
    const std::size_t word = header.is_64 ? 8 : 4;
    const std::uint64_t type_mask = header.is_64 ? 0xffffffff : 0xff;
    bool wanted = true;
    std::uint64_t left = max_scanned;
    for (const Section& section : sections) {
        if (section.type != section_rela || !wanted) continue;
        read_in_chunks(source, section.offset, section.size, 3 * word, left,
                       [&](std::string_view entries, std::uint64_t) {
                           for (std::size_t at = 0; at < entries.size() && wanted; at += 3 * word) {
                               if ((number_at(entries, at + word, word, header.big_endian) & type_mask) != *type)
                                   continue;
                               wanted = visit(number_at(entries, at, word, header.big_endian),
                                              number_at(entries, at + 2 * word, word, header.big_endian));
                           }
                           return wanted;
                       });
    }
}

// The value that the relocation of the word at `address` sets, relative to the load address.
std::optional<std::uint64_t> relocated_word(const ByteSource& source, const Header& header,
                                            const std::vector<Section>& sections, std::uint64_t address) {
    std::optional<std::uint64_t> value;
    each_relative(source, header, sections, [&](std::uint64_t at, std::uint64_t addend) {
        if (at == address) value = addend;
        return !value;
    });
    return value;
}

// The place, if it has a complete table. Any bytes could resemble a header, so the first function must be valid too.
std::optional<GoPclntabPlace> table_at(const ByteSource& source, const Header& header,
                                       const std::vector<Section>& sections, const GoPclntabPlace& place) {
    auto table = GoPclntab::open(reader_of(source, place.offset), place.size, header.big_endian);
    if (!table || !table->function(0)) return std::nullopt;
    GoPclntabPlace found = place;
    if (const auto word = table->text_start_at()) {
        found.text_start = relocated_word(source, header, sections, place.address + *word);
        if (!found.text_start && table->text_start() != 0) found.text_start = table->text_start();
        // Go 1.26 leaves the word in the header unused.
        if (!found.text_start)
            if (const auto module = find_go_module(source, header, sections, found))
                found.text_start = module->text_start;
    }
    return found;
}

// Indexes of the words in moduledata that are used. Since 1.20 coverage counters come before `end`.
constexpr std::size_t word_header = 0, word_index_size = 17, word_first_function = 20, word_text = 22,
                      word_function_data_1_18 = 38, word_function_data_1_20 = 40, module_word_count = 41;
using ModuleWords = std::array<std::uint64_t, module_word_count>;

// The words as in the file. nullopt if the index size, which no relocation changes, does not match the table.
std::optional<ModuleWords> module_words(const ByteSource& source, const Header& header,
                                        const std::vector<Section>& sections, std::uint64_t address,
                                        std::size_t functions) {
    const std::size_t word = header.is_64 ? 8 : 4, size = word * module_word_count;
    const auto offset = offset_of_address(sections, address, size);
    const auto bytes = offset ? source(*offset, size) : std::string();
    if (!bytes || bytes->size() != size) return std::nullopt;
    ModuleWords words{};
    for (std::size_t i = 0; i < words.size(); ++i) words[i] = number_at(*bytes, i * word, word, header.big_endian);
    if (words[word_index_size] != functions + 1) return std::nullopt;
    return words;
}

std::optional<GoModule> module_of(ModuleWords words, GoPclntab& table, const GoPclntabPlace& place,
                                  const ByteSource& source, const Header& header, const std::vector<Section>& sections,
                                  std::uint64_t address) {
    const std::size_t word = header.is_64 ? 8 : 4;
    each_relative(source, header, sections, [&](std::uint64_t at, std::uint64_t addend) {
        if (at >= address && at - address < word * words.size() && (at - address) % word == 0)
            words[static_cast<std::size_t>((at - address) / word)] = addend;
        return true;
    });
    if (words[word_header] != place.address || words[word_text] == 0) return std::nullopt;
    if (place.text_start && words[word_text] != *place.text_start) return std::nullopt;
    table.set_text_start(words[word_text]);
    const auto first = table.function(0);
    if (!first || first->start != words[word_first_function]) return std::nullopt;
    return GoModule{words[word_text], words[table.version() < 20 ? word_function_data_1_18 : word_function_data_1_20]};
}

// Searches .data.rel.ro, where the table lies among other data.
std::optional<GoPclntabPlace> scan(const ByteSource& source, const Header& header, const std::vector<Section>& sections,
                                   const Section& data) {
    const std::uint64_t skipped = -data.address % table_alignment;
    if (skipped >= data.size) return std::nullopt;
    std::optional<GoPclntabPlace> found;
    std::uint64_t left = max_scanned;
    const auto visit = [&](std::string_view records, std::uint64_t offset) {
        for (std::size_t at = 0; at < records.size() && !found; at += table_alignment) {
            // All known values of the first word have these bits set. GoPclntab checks the rest.
            if ((number_at(records, at, 4, header.big_endian) | 0xf) != 0xffffffff) continue;
            if (records[at + 4] != 0 || records[at + 5] != 0) continue;
            const std::uint64_t from_start = offset + at - data.offset;
            found = table_at(source, header, sections,
                             {offset + at, data.size - from_start, data.address + from_start, std::nullopt});
        }
        return !found;
    };
    read_in_chunks(source, data.offset + skipped, data.size - skipped, table_alignment, left, visit);
    return found;
}

}  // namespace

std::optional<GoPclntabPlace> find_go_pclntab(const ByteSource& source, const Header& header,
                                              const std::vector<Section>& sections) {
    for (const char* name : {".gopclntab", ".data.rel.ro.gopclntab"})
        if (const Section* section = section_named(sections, name))
            return table_at(source, header, sections, {section->offset, section->size, section->address, std::nullopt});
    if (!section_named(sections, ".note.go.buildid") && !section_named(sections, ".go.buildinfo")) return std::nullopt;
    const Section* data = section_named(sections, ".data.rel.ro");
    return data ? scan(source, header, sections, *data) : std::nullopt;
}

std::optional<GoModule> find_go_module(const ByteSource& source, const Header& header,
                                       const std::vector<Section>& sections, const GoPclntabPlace& place) {
    auto table = GoPclntab::open(reader_of(source, place.offset), place.size, header.big_endian);
    if (!table || table->version() < 18) return std::nullopt;
    const std::size_t word = header.is_64 ? 8 : 4;
    std::size_t pointers = 0, candidates = 0;
    std::uint64_t left = max_scanned;
    std::optional<GoModule> found;
    const auto try_at = [&](std::uint64_t address) {
        ++pointers;
        if (auto words = module_words(source, header, sections, address, table->size())) {
            ++candidates;
            found = module_of(*words, *table, place, source, header, sections, address);
        }
        return !found && pointers < max_pointers && candidates < max_candidates;
    };
    for (const Section& section : sections) {
        if ((section.flags & section_writable) == 0 || section.type == section_no_bits) continue;
        const std::uint64_t skipped = -section.address % word;
        if (skipped >= section.size) continue;
        const auto visit = [&](std::string_view words, std::uint64_t offset) {
            for (std::size_t at = 0; at < words.size(); at += word)
                if (number_at(words, at, word, header.big_endian) == place.address &&
                    !try_at(section.address + (offset - section.offset) + at))
                    return false;
            return true;
        };
        read_in_chunks(source, section.offset + skipped, section.size - skipped, word, left, visit);
        if (found || pointers == max_pointers || candidates == max_candidates) return found;
    }
    each_relative(source, header, sections, [&](std::uint64_t address, std::uint64_t addend) {
        return addend != place.address || try_at(address);
    });
    return found;
}

std::optional<GoPclntab> open_go_pclntab(ByteSource source, const Header& header, const GoPclntabPlace& place) {
    return open_go_pclntab(reader_of(std::move(source), 0), header.big_endian, place);
}

std::optional<GoPclntab> open_go_pclntab(GoPclntab::Reader file, bool big_endian, const GoPclntabPlace& place) {
    auto read = [file = std::move(file), start = place.offset](std::uint64_t offset, std::span<std::byte> out) {
        return file(start + offset, out);
    };
    auto table = GoPclntab::open(std::move(read), place.size, big_endian);
    if (!table) return std::nullopt;
    if (place.text_start) table->set_text_start(*place.text_start);
    if (table->text_start_at() && table->text_start() == 0) return std::nullopt;
    return table;
}

}  // namespace flamewire::elf
