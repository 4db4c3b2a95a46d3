#include "symbol/dwarf/split_unit.h"

#include <dwarf.h>

#include <algorithm>

#include "base/byte_reader.h"

namespace flamewire::symbol {
namespace {

constexpr unsigned max_origins = 16;  // of an instance of an instance; compilers write two

Bytes part(Bytes bytes, std::uint64_t offset, std::uint64_t size) {
    if (offset > bytes.size() || size > bytes.size() - offset) return {};
    return bytes.subspan(static_cast<std::size_t>(offset), static_cast<std::size_t>(size));
}
Bytes from(Bytes bytes, std::uint64_t offset) {
    return offset > bytes.size() ? Bytes{} : bytes.subspan(static_cast<std::size_t>(offset));
}

std::string string_at(Bytes strings, std::uint64_t offset) {
    return std::string(ByteReader(from(strings, offset)).c_string());
}

// Reads a string attribute in one of the forms of split units.
std::string read_string(ByteReader& in, const AttributeSpec& attribute, const SplitUnit& split) {
    const UnitFormat& format = split.unit.format;
    std::uint64_t index = 0;
    switch (attribute.form) {
        case DW_FORM_string: {
            return std::string(in.c_string());
        }
        case DW_FORM_strp: return string_at(split.sections.strings, in.number(format.offset_size));
        case DW_FORM_strx1:
        case DW_FORM_strx2:
        case DW_FORM_strx3:
        case DW_FORM_strx4: index = in.number(static_cast<std::size_t>(attribute.fixed_size)); break;
        case DW_FORM_strx:
        case DW_FORM_GNU_str_index: index = in.uleb(); break;
        default: skip_value(in, attribute, format); return {};
    }
    const Bytes offsets = split.sections.string_offsets;
    // In DWARF 5 the table starts with a header: length, version, padding.
    const std::uint64_t base = format.version < 5 ? 0 : format.offset_size == 8 ? 16 : 8;
    if (!in.ok() || index > offsets.size()) return {};
    const Bytes entry = part(offsets, base + index * format.offset_size, format.offset_size);
    if (entry.empty()) return {};
    return string_at(split.sections.strings,
                     ByteReader(entry, byte_order(format.big_endian)).number(format.offset_size));
}

// The offset of the abstract origin or specification; 0 if there is none.
std::uint64_t read_origin(ByteReader& in, const AttributeSpec& attribute, const Unit& unit) {
    switch (attribute.form) {
        case DW_FORM_ref1:
        case DW_FORM_ref2:
        case DW_FORM_ref4:
        case DW_FORM_ref8: return unit.offset + in.number(static_cast<std::size_t>(attribute.fixed_size));
        case DW_FORM_ref_udata: return unit.offset + in.uleb();
        default: skip_value(in, attribute, unit.format); return 0;
    }
}

// The unit id, which in DWARF 4 is an attribute of the first DIE.
std::uint64_t id_of_first_die(const SplitUnit& split) {
    ByteReader in(split.unit.dies, byte_order(split.unit.format.big_endian));
    const Abbreviation* const abbreviation = split.abbreviations.find(in.uleb());
    if (abbreviation == nullptr) return 0;
    for (const AttributeSpec& attribute : split.abbreviations.attributes(*abbreviation)) {
        if (attribute.name == DW_AT_GNU_dwo_id && attribute.form == DW_FORM_data8) return in.number(8);
        skip_value(in, attribute, split.unit.format);
    }
    return 0;
}

}  // namespace

std::string SplitUnit::name(std::uint64_t die_offset) const {
    std::string bare;
    for (unsigned steps = 0; steps < max_origins && die_offset >= unit.die_offset && die_offset < unit.end; ++steps) {
        const Bytes dies = part(sections.info, die_offset, unit.end - die_offset);
        ByteReader in(dies, byte_order(unit.format.big_endian));
        const Abbreviation* const abbreviation = abbreviations.find(in.uleb());
        if (!in.ok() || abbreviation == nullptr) break;
        std::uint64_t origin = 0;
        for (const AttributeSpec& attribute : abbreviations.attributes(*abbreviation)) {
            if (attribute.name == DW_AT_linkage_name || attribute.name == DW_AT_MIPS_linkage_name) {
                std::string linkage = read_string(in, attribute, *this);
                if (!linkage.empty()) return linkage;
            } else if (attribute.name == DW_AT_name && bare.empty()) {
                bare = read_string(in, attribute, *this);
            } else if (attribute.name == DW_AT_abstract_origin || attribute.name == DW_AT_specification) {
                origin = read_origin(in, attribute, unit);
            } else {
                skip_value(in, attribute, unit.format);
            }
        }
        die_offset = origin;
    }
    return bare;
}

std::optional<SplitUnit> find_split_unit(const SplitSections& sections, std::uint64_t id) {
    for (std::uint64_t offset = 0; offset < sections.info.size();) {
        const Bytes rest = from(sections.info, offset);
        ByteReader in(rest, byte_order(sections.big_endian));
        SplitUnit split{sections, {}, {}};
        UnitFormat& format = split.unit.format;
        format.big_endian = sections.big_endian;
        std::uint64_t length = in.number(4);
        format.offset_size = 4;
        if (length == 0xffffffff) {
            length = in.number(8);
            format.offset_size = 8;
        }
        if (!in.ok() || length == 0 || length > in.remaining()) return std::nullopt;
        const std::uint64_t end = offset + in.position() + length;
        format.version = static_cast<std::uint16_t>(in.number(2));
        const bool v5 = format.version >= 5;
        const std::uint64_t type = v5 ? in.number(1) : std::uint64_t{DW_UT_split_compile};
        if (v5) format.address_size = static_cast<std::uint8_t>(in.number(1));
        split.unit.abbreviations_offset = in.number(format.offset_size);
        if (!v5) format.address_size = static_cast<std::uint8_t>(in.number(1));
        std::uint64_t found = v5 && type == DW_UT_split_compile ? in.number(8) : 0;
        split.unit.offset = offset;
        split.unit.die_offset = offset + in.position();
        split.unit.end = end;
        offset = end;
        const bool known = format.version >= 4 && format.version <= 5 && type == DW_UT_split_compile &&
                           (format.address_size == 4 || format.address_size == 8);
        if (!in.ok() || !known || split.unit.die_offset >= end || (v5 && found != id)) continue;
        split.unit.dies = part(sections.info, split.unit.die_offset, end - split.unit.die_offset);
        split.abbreviations = Abbreviations(from(sections.abbreviations, split.unit.abbreviations_offset), format);
        if (!v5) found = id_of_first_die(split);
        if (found == id) return split;
    }
    return std::nullopt;
}

// The index has a hash table of ids, the row of each, and two tables with a column for each kind of section.
std::optional<SplitSections> cut_of_package(SplitSections whole, Bytes cu_index, std::uint64_t id) {
    ByteReader in(cu_index, byte_order(whole.big_endian));
    // DWARF 5 has a 2-byte version and padding, earlier versions have a 4-byte version.
    const std::uint64_t first = in.number(2), second = in.number(2);
    const std::uint64_t version = first != 0 ? first : second;
    const std::uint64_t columns = in.number(4), units = in.number(4), slots = in.number(4);
    if (!in.ok() || (version != 2 && version != 5) || columns > 16 || slots > cu_index.size() / 12) return std::nullopt;
    std::uint64_t slot = slots;
    for (std::uint64_t i = 0; i < slots; ++i)
        if (in.number(8) == id && slot == slots) slot = i;
    if (slot == slots) return std::nullopt;
    in.skip(slot * 4);
    const std::uint64_t row = in.number(4);
    in.skip((slots - slot - 1) * 4);
    if (!in.ok() || row == 0 || row > units || units > cu_index.size() / 8) return std::nullopt;
    std::uint64_t kinds[16] = {}, offsets[16] = {};
    for (std::uint64_t i = 0; i < columns; ++i) kinds[i] = in.number(4);
    in.skip((row - 1) * columns * 4);
    for (std::uint64_t i = 0; i < columns; ++i) offsets[i] = in.number(4);
    in.skip((units - 1) * columns * 4);
    constexpr std::uint64_t info = 1, abbreviations = 3, string_offsets = 6, range_lists = 8;
    for (std::uint64_t i = 0; i < columns; ++i) {
        const std::uint64_t size = in.number(4);
        const auto cut = [&](Bytes& section) { section = part(section, offsets[i], size); };
        if (kinds[i] == info) cut(whole.info);
        if (kinds[i] == abbreviations) cut(whole.abbreviations);
        if (kinds[i] == string_offsets) cut(whole.string_offsets);
        if (kinds[i] == range_lists && version == 5) cut(whole.range_lists);
    }
    if (!in.ok()) return std::nullopt;
    return whole;
}

}  // namespace flamewire::symbol
