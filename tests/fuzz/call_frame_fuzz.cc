// Arbitrary bytes as call frame information: as instructions of a function, and as a whole section. The first four
// bytes select architecture and byte order; .eh_frame or .debug_frame; the size of the CIE's instructions; data
// alignment.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "unwind/tables/call_frame.h"
#include "unwind/tables/frame_index.h"
#include "unwind/tables/frame_section.h"

namespace {

using namespace flamewire;

void must_contain(const unwind::FrameRow& row, std::uint64_t address) {
    if (address < row.start || address >= row.end) std::abort();
    for (const unwind::RegisterRule& rule : row.registers)
        if (std::uint64_t{rule.expression.begin} + rule.expression.size > row.expressions.size()) std::abort();
}

void run_instructions(const std::uint8_t* head, Bytes bytes, unwind::Arch arch, bool big_endian) {
    const std::size_t common_size = head[2] < bytes.size() ? head[2] : bytes.size();
    unwind::CommonEntry common;
    common.data_alignment = static_cast<std::int8_t>(head[3]);
    common.return_column = 16;
    common.fde_encoding = (head[1] & 2) != 0 ? 0x1b : 0;
    common.instructions = bytes.first(common_size);
    unwind::TableWork work;
    const unwind::FrameDescription function{0x1000, 0x9000, bytes.subspan(common_size), 0x20000};
    for (const std::uint64_t address : {std::uint64_t{0x1000}, std::uint64_t{0x1004}, std::uint64_t{0x8fff}})
        if (const auto row = unwind::run_call_frame(common, function, address, arch, big_endian, work))
            must_contain(*row, address);
}

void read_section(const std::uint8_t* head, Bytes bytes, unwind::Arch arch, bool big_endian) {
    unwind::FrameFormat format;
    format.debug = (head[1] & 1) != 0;
    format.big_endian = big_endian;
    format.address_size = (head[1] & 4) != 0 ? 4 : 8;
    unwind::FrameSection section(std::string(as_text(bytes)), 0, format);
    unwind::FrameIndex index;
    unwind::TableWork work;
    index.build(section, [](std::uint64_t) { return true; }, work);
    for (std::size_t i = 0; i < index.size(); ++i) {
        const auto description = section.description_at(index.offset_at(i));
        if (!description) continue;
        const std::uint64_t address = description->function.start;
        if (!index.find(address)) std::abort();
        if (const auto row =
                unwind::run_call_frame(*description->common, description->function, address, arch, big_endian, work))
            must_contain(*row, address);
    }
    for (std::uint64_t offset = 0; offset < bytes.size(); ++offset) (void)section.description_at(offset);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    constexpr std::size_t head_size = 4;
    if (size < head_size) return 0;
    const Bytes bytes(reinterpret_cast<const std::byte*>(data) + head_size, size - head_size);
    const auto arch = static_cast<unwind::Arch>(data[0] & 3);
    const bool big_endian = (data[0] & 4) != 0;
    run_instructions(data, bytes, arch, big_endian);
    read_section(data, bytes, arch, big_endian);
    return 0;
}
