// The abbreviation table of a DWARF unit, prepared so that DIEs can be skipped fast, and the sizes of attribute forms.
// libdw has all this too, but a DIE walk through its API costs ten times as much. Source: DWARF 5, sections 7.5.3 to
// 7.5.6.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/byte_reader.h"

namespace flamewire::symbol {

// The properties of a unit that determine the sizes of forms.
struct UnitFormat {
    std::uint16_t version = 0;
    std::uint8_t address_size = 8;
    std::uint8_t offset_size = 4;
    bool big_endian = false;

    bool operator==(const UnitFormat&) const = default;
};

struct AttributeSpec {
    std::uint32_t name = 0, form = 0;
    std::int32_t fixed_size = -1;  // see fixed_form_size()
    std::int64_t implicit = 0;     // the value of DW_FORM_implicit_const
};

struct Abbreviation {
    std::uint64_t code = 0;  // 0: no such abbreviation
    std::uint32_t tag = 0;
    std::uint32_t first_attribute = 0, attribute_count = 0;
    std::uint32_t fixed_size = 0;  // of all attributes, if has_fixed_size
    bool has_fixed_size = false;
    bool has_children = false;
};

class Abbreviations {
public:
    Abbreviations() = default;
    // Reads the table at the start of `bytes`. Stops where it is malformed.
    Abbreviations(Bytes bytes, const UnitFormat& format);

    // nullptr if `code` is unknown.
    [[nodiscard]] const Abbreviation* find(std::uint64_t code) const;
    [[nodiscard]] std::span<const AttributeSpec> attributes(const Abbreviation& abbreviation) const {
        return std::span(attributes_).subspan(abbreviation.first_attribute, abbreviation.attribute_count);
    }

private:
    std::vector<Abbreviation> by_code_;  // sorted; compilers number from 1 without gaps, so find() tries code - 1 first
    std::vector<AttributeSpec> attributes_;
};

// Skips one value of a form without fixed size. Fails the cursor if the form is unknown.
void skip_variable_form(ByteReader& in, std::uint32_t form, const UnitFormat& format);
// Skips one attribute value.
inline void skip_value(ByteReader& in, const AttributeSpec& attribute, const UnitFormat& format) {
    if (attribute.fixed_size >= 0)
        in.skip(static_cast<std::uint64_t>(attribute.fixed_size));
    else
        skip_variable_form(in, attribute.form, format);
}
// The size of values of this form, or -1 if it varies or the form is unknown.
int fixed_form_size(std::uint32_t form, const UnitFormat& format);

}  // namespace flamewire::symbol
