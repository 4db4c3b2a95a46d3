// The unwind tables of one ELF file: .eh_frame by .eh_frame_hdr or, without a usable one, by an index of its own;
// .debug_frame; .ARM.exidx. Rows are made on demand, one address at a time; of a file only the pages that are needed
// are read, through the PageCache.
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

// One function as a table describes it, by ELF virtual addresses.
struct CodeRange {
    std::uint64_t start = 0, size = 0;
};

class ModuleTables {
public:
    // invalid: no ELF file, or an architecture that is none of ours. A file without tables opens, and has no rows.
    // `pages` and `work` outlive it.
    static Result<std::unique_ptr<ModuleTables>> open(ModuleId id, elf::ByteSource bytes, PageCache& pages,
                                                      TableWork& work);
    virtual ~ModuleTables() = default;

    [[nodiscard]] virtual Arch arch() const = 0;
    [[nodiscard]] virtual bool big_endian() const = 0;
    [[nodiscard]] virtual std::uint64_t entry() const = 0;  // e_entry; ARM: without the Thumb bit
    // ELF virtual address of .eh_frame_hdr, for libunwind; 0: there is none.
    [[nodiscard]] virtual std::uint64_t eh_frame_hdr() const { return 0; }

    // The row for the frame whose code is at `address` (ELF virtual; of a caller: the return address - 1; ARM: without
    // the Thumb bit). Nothing: no table covers it, what covers it is damaged, or the work is spent.
    virtual std::optional<FrameRow> row_at(std::uint64_t address) = 0;
    // Bytes of a PT_LOAD that is not writable; false when they are not all there.
    virtual bool read(std::uint64_t address, std::span<std::byte> out) = 0;
    // At most `count` functions, spread evenly over the tables.
    virtual std::vector<CodeRange> some_functions(std::size_t count) = 0;

    // Whether the module's code goes from one stack to another, as Go's does: no copy of a stack has all of its frames.
    [[nodiscard]] virtual bool switches_stacks() { return false; }

    // Memory besides the page cache: indexes that were built.
    [[nodiscard]] virtual std::size_t memory_bytes() const = 0;
};

}  // namespace flamewire::unwind
