#include "perf/attribute.h"

#include "base/byte_reader.h"

namespace flamewire::perf {
namespace {

constexpr std::uint8_t reversed(std::uint8_t byte) {
    std::uint8_t result = 0;
    for (unsigned bit = 0; bit < 8; ++bit)
        if ((byte >> bit & 1) != 0) result = static_cast<std::uint8_t>(result | 1U << (7 - bit));
    return result;
}

// Reads a word of one-bit fields. Compilers for big-endian machines start at the highest bit of the first byte.
std::uint64_t flag_word(ByteReader& in, std::endian order) {
    std::uint64_t flags = 0;
    for (unsigned byte = 0; byte < 8; ++byte) {
        const std::uint8_t value = in.u8();
        flags |= std::uint64_t{order == std::endian::big ? reversed(value) : value} << (8 * byte);
    }
    return flags;
}

}  // namespace

Attribute parse_attribute(Bytes bytes, std::endian order) {
    ByteReader in(bytes, order);
    Attribute attribute;
    attribute.type = in.u32();
    in.skip(4);  // the size
    attribute.config = in.u64();
    attribute.period_or_frequency = in.u64();
    attribute.sample_type = in.u64();
    attribute.read_format = in.u64();
    const std::uint64_t flags = flag_word(in, order);
    attribute.inherit = (flags >> 1 & 1) != 0;
    attribute.frequency = (flags >> 10 & 1) != 0;
    attribute.sample_id_all = (flags >> 18 & 1) != 0;
    in.skip(24);  // wakeup, breakpoint type, config1, config2
    attribute.branch_sample_type = in.u64();
    attribute.sample_regs_user = in.u64();
    attribute.sample_stack_user = in.u32();
    in.skip(4);   // clock
    in.skip(12);  // registers of the interrupted code, AUX watermark
    attribute.sample_max_stack = in.u16();
    return attribute;
}

}  // namespace flamewire::perf
