#include "symbol/dwarf/abbreviations.h"

#include <dwarf.h>

#include <algorithm>

#include "base/byte_reader.h"

namespace flamewire::symbol {
namespace {

// Less than 32-bit offsets can address, and more than compilers write.
constexpr std::size_t max_attributes = 1u << 24;

}  // namespace

int fixed_form_size(std::uint32_t form, const UnitFormat& format) {
    switch (form) {
        case DW_FORM_flag_present:
        case DW_FORM_implicit_const: return 0;
        case DW_FORM_data1:
        case DW_FORM_ref1:
        case DW_FORM_flag:
        case DW_FORM_strx1:
        case DW_FORM_addrx1: return 1;
        case DW_FORM_data2:
        case DW_FORM_ref2:
        case DW_FORM_strx2:
        case DW_FORM_addrx2: return 2;
        case DW_FORM_strx3:
        case DW_FORM_addrx3: return 3;
        case DW_FORM_data4:
        case DW_FORM_ref4:
        case DW_FORM_strx4:
        case DW_FORM_addrx4:
        case DW_FORM_ref_sup4: return 4;
        case DW_FORM_data8:
        case DW_FORM_ref8:
        case DW_FORM_ref_sig8:
        case DW_FORM_ref_sup8: return 8;
        case DW_FORM_data16: return 16;
        case DW_FORM_addr: return format.address_size;
        case DW_FORM_ref_addr: return format.version <= 2 ? format.address_size : format.offset_size;
        case DW_FORM_strp:
        case DW_FORM_line_strp:
        case DW_FORM_strp_sup:
        case DW_FORM_sec_offset:
        case DW_FORM_GNU_ref_alt:
        case DW_FORM_GNU_strp_alt: return format.offset_size;
        default: return -1;
    }
}

void skip_variable_form(ByteReader& in, std::uint32_t form, const UnitFormat& format) {
    switch (form) {
        case DW_FORM_string: (void)in.c_string(); return;
        case DW_FORM_udata:
        case DW_FORM_sdata:
        case DW_FORM_ref_udata:
        case DW_FORM_strx:
        case DW_FORM_addrx:
        case DW_FORM_loclistx:
        case DW_FORM_rnglistx:
        case DW_FORM_GNU_addr_index:
        case DW_FORM_GNU_str_index: return (void)in.uleb();
        case DW_FORM_block1: return in.skip(in.number(1));
        case DW_FORM_block2: return in.skip(in.number(2));
        case DW_FORM_block4: return in.skip(in.number(4));
        case DW_FORM_block:
        case DW_FORM_exprloc: return in.skip(in.uleb());
        case DW_FORM_indirect: {
            const std::uint64_t actual = in.uleb();
            // A chain of indirections is meaningless, and could be as deep as the section is long.
            if (actual == DW_FORM_indirect || actual == DW_FORM_implicit_const || actual > 0xffff) return in.fail();
            const auto form_here = static_cast<std::uint32_t>(actual);
            return skip_value(in, {0, form_here, fixed_form_size(form_here, format), 0}, format);
        }
        default: return in.fail();
    }
}

Abbreviations::Abbreviations(Bytes bytes, const UnitFormat& format) {
    ByteReader in(bytes, byte_order(format.big_endian));
    while (attributes_.size() < max_attributes) {
        Abbreviation entry;
        entry.code = in.uleb();
        if (!in.ok() || entry.code == 0) break;
        entry.tag = static_cast<std::uint32_t>(in.uleb());
        entry.has_children = in.number(1) != 0;
        entry.first_attribute = static_cast<std::uint32_t>(attributes_.size());
        entry.has_fixed_size = true;
        while (attributes_.size() < max_attributes) {
            AttributeSpec attribute;
            attribute.name = static_cast<std::uint32_t>(in.uleb());
            attribute.form = static_cast<std::uint32_t>(in.uleb());
            if (attribute.form == DW_FORM_implicit_const) attribute.implicit = in.sleb();
            if (!in.ok() || (attribute.name == 0 && attribute.form == 0)) break;
            attribute.fixed_size = fixed_form_size(attribute.form, format);
            attributes_.push_back(attribute);
            entry.has_fixed_size = entry.has_fixed_size && attribute.fixed_size >= 0;
            if (attribute.fixed_size >= 0) entry.fixed_size += static_cast<std::uint32_t>(attribute.fixed_size);
        }
        if (!in.ok()) break;
        entry.attribute_count = static_cast<std::uint32_t>(attributes_.size()) - entry.first_attribute;
        by_code_.push_back(entry);
    }
    const auto by_code = [](const Abbreviation& a, const Abbreviation& b) { return a.code < b.code; };
    if (!std::is_sorted(by_code_.begin(), by_code_.end(), by_code))
        std::sort(by_code_.begin(), by_code_.end(), by_code);
}

const Abbreviation* Abbreviations::find(std::uint64_t code) const {
    if (code - 1 < by_code_.size() && by_code_[code - 1].code == code) return &by_code_[code - 1];
    const auto found = std::lower_bound(by_code_.begin(), by_code_.end(), code,
                                        [](const Abbreviation& a, std::uint64_t value) { return a.code < value; });
    return found != by_code_.end() && found->code == code ? &*found : nullptr;
}

}  // namespace flamewire::symbol
