// What the walker must know of an architecture. One file each, arch_NAME.cc; a new one is a new file and a line in
// arch.cc.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include "unwind/frame/frame_row.h"
#include "unwind/frame/memory_reader.h"
#include "unwind/frame/registers.h"

namespace flamewire::unwind {

struct ArchInfo {
    RegisterNames names;

    // Registers that a function gives back to its caller as they were (callee-saved); of all others, but pc and sp, a
    // frame's value is not known to its callers. A rule that touches only these is compact (rule.h).
    std::array<std::uint8_t, 12> preserved;
    std::uint8_t preserved_count;

    // The row is what a frame-pointer walk assumes: CFA = fp + a constant, caller's fp and return address stored where
    // the kernel looks for them (arch/*/kernel/stacktrace.c, perf_callchain.c).
    bool (*frame_pointer_row)(const FrameRow& row);

    // The caller's registers by the frame pointer alone; nothing when that cannot be (not in the stack, not aligned, not
    // outwards).
    std::optional<Registers> (*by_frame_pointer)(const Registers& registers, const MemoryReader& read);

    // Whether `code` (the bytes at a pc, up to 16) is the kernel's or libc's return-from-signal code. Asked where no table
    // covers the address, or where one says that this is a signal frame or the outermost one.
    bool (*is_signal_return)(std::span<const std::byte> code);

    // The interrupted registers when pc is at the kernel's or libc's return-from-signal code without tables; `code`
    // holds the bytes at pc (up to 16). Nothing when it is no such code.
    std::optional<Registers> (*by_signal_frame)(const Registers& registers, std::span<const std::byte> code,
                                                const MemoryReader& read);

    // Whether the code at a pc goes on elsewhere and has not touched the stack or the return address: a linker's stub,
    // which often no table describes (PLT entries on aarch64 and arm; everywhere, those of static programs). `before`:
    // the bytes in front of it, up to 16.
    bool (*is_stub)(std::span<const std::byte> before, std::span<const std::byte> code);

    // Whether the code that a function returns to ends the thread at once: that is what libc's clone calls a thread's
    // first function from, where its table does not say that nobody called it (musl; on arm, no table can say so).
    bool (*ends_thread)(std::span<const std::byte> code);

    // The row of the instruction at code[at] if it belongs to CPython's perf trampoline (Python/asm_trampoline*.S), which has
    // no unwind table. A return address must follow the trampoline's call. Null if CPython has no trampoline here.
    std::optional<FrameRow> (*trampoline_row)(std::span<const std::byte> code, std::size_t at,
                                              bool return_address) = nullptr;
    // Bytes before `at`, and from it on, that trampoline_row needs.
    std::uint8_t trampoline_before = 0, trampoline_after = 0;

    // What follows is null where compilers always make tables.

    // The row of a frame that no table describes, from its code. What it says is to be believed when its return address
    // follows a call.
    std::optional<FrameRow> (*row_by_code)(const CodeReader& read, std::uint64_t pc, bool return_address) = nullptr;

    // Whether a call instruction ends at `address`, which is as it was found (ARM: with the Thumb bit).
    bool (*follows_call)(std::uint64_t address, const MemoryReader& read) = nullptr;

    // Whether that call goes to the function that has its code at `code`, as far as one can see.
    bool (*calls)(std::uint64_t return_address, std::uint64_t code, const MemoryReader& read) = nullptr;
};

extern const ArchInfo arch_x86_64, arch_x86, arch_aarch64, arch_arm;
const ArchInfo& arch_info(Arch arch);

}  // namespace flamewire::unwind
