// Call frame information: runs the instructions of CIEs and FDEs up to an address. Pure: bytes in, rows out. Source:
// DWARF 5, section 6.4; Linux Standard Base 5.0 Core, section 10.6 (.eh_frame: augmentation, pointer encodings).
#pragma once

#include <cstdint>
#include <optional>

#include "base/bytes.h"
#include "unwind/frame/frame_row.h"
#include "unwind/tables/encoded_pointer.h"
#include "unwind/tables/table_work.h"

namespace flamewire::unwind {

// A CIE, parsed and ready for its FDEs.
struct CommonEntry {
    std::uint64_t code_alignment = 1;
    std::int64_t data_alignment = 1;
    std::uint8_t return_column = 0;
    std::uint8_t fde_encoding = 0;  // DW_EH_PE_*, of pointers in FDEs
    std::uint8_t address_size = 8, segment_size = 0;
    bool has_augmentation_data = false;
    bool signal_frame = false;
    Bytes instructions{};
    PointerBases bases{};  // of pointers in the section
};

// An FDE: one function, or part of one.
struct FrameDescription {
    std::uint64_t start = 0, end = 0;  // ELF virtual addresses
    Bytes instructions{};
    std::uint64_t instructions_address = 0;  // address of `instructions`, for DW_CFA_set_loc
};

// Runs the instructions of `common`, then those of `description`, up to `address`. nullopt if they are damaged or
// unknown, or if `work` is spent. Memory is bounded by 64 remembered states.
std::optional<FrameRow> run_call_frame(const CommonEntry& common, const FrameDescription& description,
                                       std::uint64_t address, Arch arch, bool big_endian, TableWork& work);

}  // namespace flamewire::unwind
