// Reads one module's file by offset and by ELF virtual address, through the page cache.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "elf/elf_file.h"
#include "unwind/tables/code_map.h"
#include "unwind/tables/page_cache.h"

namespace flamewire::unwind {

// A range of bytes that is contiguous in the file and in the address space.
struct FileRange {
    std::uint64_t address = 0, offset = 0, size = 0;
    [[nodiscard]] bool contains(std::uint64_t wanted) const { return wanted - address < size; }
};

class ModuleFile {
public:
    ModuleFile(ModuleId id, elf::ByteSource source, PageCache& pages)
        : id_(id), source_(std::move(source)), pages_(pages) {}

    // The bytes at `offset` up to the end of the page: at most `size` bytes, none at the end of the file. Valid until
    // the next call of any function of this class or of the page cache.
    Bytes some(std::uint64_t offset, std::size_t size);
    // All `size` bytes, or none. Valid as long as those of some().
    Bytes all(std::uint64_t offset, std::size_t size);
    bool read(std::uint64_t offset, std::span<std::byte> out);
    [[nodiscard]] const elf::ByteSource& source() const { return source_; }
    // Bypasses the cache, for one pass over large data.
    std::string read_once(std::uint64_t offset, std::size_t size) const;

    void set_segments(const std::vector<elf::Segment>& segments);
    struct Load {
        FileRange range;
        bool writable = false;
    };
    // The PT_LOAD segments, as far as they are in the file. Usually a handful.
    [[nodiscard]] const std::vector<Load>& loads() const { return loads_; }
    // The range from `address` to the end of its PT_LOAD.
    [[nodiscard]] std::optional<FileRange> range_from(std::uint64_t address) const;

private:
    ModuleId id_;
    elf::ByteSource source_;
    PageCache& pages_;
    std::vector<Load> loads_;
    std::string crossing_;  // bytes of more than one page
};

}  // namespace flamewire::unwind
