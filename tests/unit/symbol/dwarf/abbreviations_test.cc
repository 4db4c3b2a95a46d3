// Sizes of attribute forms, from the table of DWARF 5, section 7.5.6.
#include "symbol/dwarf/abbreviations.h"

#include <catch2/catch.hpp>
#include <dwarf.h>

using namespace flamewire::symbol;

TEST_CASE("forms of a fixed size") {
    struct Form {
        std::uint32_t form;
        int size;
    };
    const UnitFormat format{.version = 5, .address_size = 8, .offset_size = 4};
    for (const Form& one : {Form{DW_FORM_flag_present, 0},
                            {DW_FORM_implicit_const, 0},
                            {DW_FORM_data1, 1},
                            {DW_FORM_ref1, 1},
                            {DW_FORM_flag, 1},
                            {DW_FORM_strx1, 1},
                            {DW_FORM_addrx1, 1},
                            {DW_FORM_data2, 2},
                            {DW_FORM_ref2, 2},
                            {DW_FORM_strx2, 2},
                            {DW_FORM_addrx2, 2},
                            {DW_FORM_strx3, 3},
                            {DW_FORM_addrx3, 3},
                            {DW_FORM_data4, 4},
                            {DW_FORM_ref4, 4},
                            {DW_FORM_strx4, 4},
                            {DW_FORM_addrx4, 4},
                            {DW_FORM_ref_sup4, 4},
                            {DW_FORM_data8, 8},
                            {DW_FORM_ref8, 8},
                            {DW_FORM_ref_sig8, 8},
                            {DW_FORM_ref_sup8, 8},
                            {DW_FORM_data16, 16},
                            {DW_FORM_addr, 8},
                            {DW_FORM_strp, 4},
                            {DW_FORM_line_strp, 4},
                            {DW_FORM_sec_offset, 4},
                            {DW_FORM_ref_addr, 4},
                            {DW_FORM_udata, -1},
                            {DW_FORM_string, -1},
                            {DW_FORM_exprloc, -1},
                            {DW_FORM_block1, -1}}) {
        CAPTURE(one.form);
        CHECK(fixed_form_size(one.form, format) == one.size);
    }
    // 64-bit DWARF with 32-bit addresses, and version 2, in which a reference to another unit has the size of an
    // address.
    CHECK(fixed_form_size(DW_FORM_strp, {.version = 5, .address_size = 4, .offset_size = 8}) == 8);
    CHECK(fixed_form_size(DW_FORM_addr, {.version = 5, .address_size = 4, .offset_size = 8}) == 4);
    CHECK(fixed_form_size(DW_FORM_ref_addr, {.version = 5, .address_size = 4, .offset_size = 8}) == 8);
    CHECK(fixed_form_size(DW_FORM_ref_addr, {.version = 2, .address_size = 4, .offset_size = 8}) == 4);
}
