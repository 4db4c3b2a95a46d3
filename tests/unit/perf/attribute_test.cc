#include "perf/attribute.h"

#include <catch2/catch.hpp>

#include "record_body.h"

using namespace flamewire;
using namespace flamewire::perf;

// On big-endian machines, the bits of the flag word count from the other end of each byte.
TEST_CASE("an attribute in both byte orders") {
    for (const std::endian order : {std::endian::little, std::endian::big}) {
        RecordBody body(order);
        body.u32(1).u32(96).u64(7).u64(99).u64(0x3107).u64(4);
        // inherit (bit 1), freq (bit 10), sample_id_all (bit 18)
        for (const std::uint8_t flags : {0x02, 0x04, 0x04, 0, 0, 0, 0, 0}) {
            std::uint8_t stored = 0;
            for (unsigned bit = 0; bit < 8; ++bit)
                if ((flags >> bit & 1) != 0)
                    stored = static_cast<std::uint8_t>(stored | 1U << (order == std::endian::big ? 7 - bit : bit));
            body.u8(stored);
        }
        body.u32(0).u32(0).u64(0).u64(0).u64(0x808).u64(0xff0fff).u32(8192).u32(1).u64(0);
        const Attribute attribute = parse_attribute(body.bytes(), order);
        CHECK((attribute.type == 1 && attribute.config == 7));
        CHECK((attribute.period_or_frequency == 99 && attribute.read_format == 4));
        CHECK((attribute.inherit && attribute.frequency && attribute.sample_id_all));
        CHECK((attribute.branch_sample_type == 0x808 && attribute.sample_regs_user == 0xff0fff));
        CHECK((attribute.sample_stack_user == 8192 && attribute.sample_max_stack == 0));
        const RecordFormat format = attribute.record_format(250);
        CHECK((format.fields == 0x3107 && format.read_format == 4 && format.branch_fields == 0x808));
        CHECK((format.register_mask == 0xff0fff && format.period == 250));
    }
}

TEST_CASE("an attribute of the first version has no newer fields") {
    RecordBody body(std::endian::native);
    body.u32(0).u32(64).u64(1).u64(4000).u64(0x7).u64(0).u64(0).u32(0).u32(0).u64(0);
    const Attribute attribute = parse_attribute(body.bytes(), std::endian::native);
    CHECK((attribute.sample_type == 7 && attribute.period_or_frequency == 4000));
    CHECK((attribute.sample_regs_user == 0 && attribute.sample_stack_user == 0 && !attribute.frequency));
}
