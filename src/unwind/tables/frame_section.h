// One .eh_frame or .debug_frame: finds and reads its entries. Source: DWARF 5, section 6.4.1; Linux Standard Base 5.0
// Core, section 10.6.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/byte_reader.h"
#include "base/bytes.h"
#include "unwind/tables/call_frame.h"
#include "unwind/tables/module_file.h"

namespace flamewire::unwind {

// How to read a section's entries.
struct FrameFormat {
    bool debug = false;  // .debug_frame, where FDEs refer to their CIE differently
    std::uint8_t address_size = 8;
    bool big_endian = false;
    bool ends_at_zero = false;  // a length of 0 ends the section, whose size is unknown; otherwise it is padding
    PointerBases bases{};
};

class FrameSection {
public:
    // `file` must outlive this object.
    FrameSection(ModuleFile& file, FileRange range, const FrameFormat& format);
    // A section that is not stored as is in a file: a compressed one, decompressed, or one that a JIT compiler wrote.
    FrameSection(std::string bytes, std::uint64_t address, const FrameFormat& format);
    FrameSection(const FrameSection&) = delete;
    FrameSection& operator=(const FrameSection&) = delete;

    [[nodiscard]] std::uint64_t address() const { return range_.address; }
    [[nodiscard]] std::uint64_t size() const { return range_.size; }
    [[nodiscard]] std::size_t memory_bytes() const { return memory_.capacity(); }

    struct Description {
        const CommonEntry* common = nullptr;
        FrameDescription function;
    };
    // The FDE at an offset of the section. nullopt if there is none or it is damaged. Valid until the next call.
    std::optional<Description> description_at(std::uint64_t offset);

    // One pass over the starts of all functions, in the section's order. Skips damaged entries. An entry with an
    // invalid length ends the pass, and so do 16 million entries.
    struct Start {
        std::uint64_t address = 0, offset = 0;
    };
    class Pass {
    public:
        Pass(FrameSection& section, TableWork& work) : section_(section), work_(work) {}
        std::optional<Start> next();

    private:
        Bytes bytes(std::uint64_t offset, std::size_t size);
        FrameSection& section_;
        TableWork& work_;
        std::size_t entries_ = 0;
        std::uint64_t offset_ = 0;
        std::string chunk_;
        std::uint64_t chunk_offset_ = 0;
    };

private:
    struct Head;
    struct Common {
        std::uint64_t offset = 0;
        bool used = false, good = false;
        CommonEntry entry;
        std::string instructions;
    };

    std::optional<Head> read_head(Bytes bytes, std::uint64_t offset) const;
    // Reads start and end of a function at the cursor, whose byte 0 is at `offset` of the section.
    bool read_extent(ByteReader& in, std::uint64_t offset, const Common& common, FrameDescription& function) const;
    const Common& common_at(std::uint64_t offset);
    bool parse_common(Bytes content, std::uint64_t offset, Common& common) const;
    bool parse_augmentation(ByteReader& in, std::uint64_t offset, std::string_view letters, CommonEntry& entry) const;
    Bytes bytes(std::uint64_t offset, std::size_t size);

    ModuleFile* file_;  // null: the bytes are in memory_
    FileRange range_;
    FrameFormat format_;
    std::string memory_;
    // A file usually has a handful of CIEs in .eh_frame, and one per compilation unit in .debug_frame.
    std::array<Common, 16> commons_;
};

}  // namespace flamewire::unwind
