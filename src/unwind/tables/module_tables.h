// The unwind tables of one ELF file: .eh_frame through .eh_frame_hdr or, if that is unusable, through our own index;
// .debug_frame; .ARM.exidx. Rows are computed on demand, one address at a time. Only the needed pages of the file are
// read, through the PageCache.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "elf/elf_file.h"
#include "unwind/frame/frame_row.h"
#include "unwind/frame/registers.h"
#include "unwind/tables/code_map.h"
#include "unwind/tables/page_cache.h"
#include "unwind/tables/table_work.h"

namespace flamewire::unwind {

// A function in a table, by ELF virtual addresses.
struct CodeRange {
    std::uint64_t start = 0, size = 0;
};

class ModuleTables {
public:
    // invalid: not an ELF file, or an unsupported architecture. A file without tables opens, but has no rows. `pages`
    // and `work` must outlive the result.
    static Result<std::unique_ptr<ModuleTables>> open(ModuleId id, elf::ByteSource bytes, PageCache& pages,
                                                      TableWork& work);
    virtual ~ModuleTables() = default;

    [[nodiscard]] virtual Arch arch() const = 0;
    [[nodiscard]] virtual bool big_endian() const = 0;
    [[nodiscard]] virtual std::uint64_t entry() const = 0;  // e_entry; ARM: without the Thumb bit
    // ELF virtual address of .eh_frame_hdr, for libunwind. 0 if there is none.
    [[nodiscard]] virtual std::uint64_t eh_frame_hdr() const { return 0; }

    // The row for the frame at `address` (ELF virtual; for a caller: the return address - 1; ARM: without the Thumb
    // bit). nullopt if no table covers it, the entry is damaged, or the work is spent.
    virtual std::optional<FrameRow> row_at(std::uint64_t address) = 0;
    // Reads from a PT_LOAD that is not writable. Returns false if the bytes are not all available.
    virtual bool read(std::uint64_t address, std::span<std::byte> out) = 0;
    // At most `count` functions, spread evenly over the tables.
    virtual std::vector<CodeRange> some_functions(std::size_t count) = 0;

    // The function with this code, from the linker's search table. nullopt if it is not there.
    virtual std::optional<CodeRange> function_at(std::uint64_t /*address*/) { return std::nullopt; }

    // Whether the module's code switches stacks, as Go's does. No copy of one stack then has all frames.
    [[nodiscard]] virtual bool switches_stacks() { return false; }

    // Memory besides the page cache: the indexes.
    [[nodiscard]] virtual std::size_t memory_bytes() const = 0;
};

}  // namespace flamewire::unwind
