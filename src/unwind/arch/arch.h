// What the unwinder needs for an architecture. To add one, write a file arch_NAME.cc and add a line in arch.cc.
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

    // Callee-saved registers. The caller's values of all other registers, except pc and sp, are unknown. A rule that
    // touches only these registers is compact (rule.h).
    std::array<std::uint8_t, 12> preserved;
    std::uint8_t preserved_count;

    // Whether the row matches a frame-pointer walk: CFA = fp + a constant, with the caller's fp and the return address
    // where the kernel reads them (arch/*/kernel/stacktrace.c, perf_callchain.c).
    bool (*frame_pointer_row)(const FrameRow& row);

    // The caller's registers from the frame pointer alone. nullopt if the frame pointer cannot be valid (not in the
    // stack, not aligned, not outwards).
    std::optional<Registers> (*by_frame_pointer)(const Registers& registers, const MemoryReader& read);

    // Whether `code` (the bytes at a pc, up to 16) is the kernel's or libc's return-from-signal code. Called if no
    // table covers the address, or if one marks a signal frame or the outermost frame.
    bool (*is_signal_return)(std::span<const std::byte> code);

    // The interrupted registers if pc is at return-from-signal code of the kernel or libc that has no tables. `code` is
    // the bytes at pc (up to 16). nullopt if it is not such code.
    std::optional<Registers> (*by_signal_frame)(const Registers& registers, std::span<const std::byte> code,
                                                const MemoryReader& read);

    // Whether the code at a pc is a linker's stub: it jumps elsewhere and has not changed the stack or the return
    // address. Many stubs have no table (PLT entries on aarch64 and arm; in static programs on all architectures).
    // `before` is the bytes before it, up to 16.
    bool (*is_stub)(std::span<const std::byte> before, std::span<const std::byte> code);

    // Whether the code at a return address ends the thread at once. libc's clone calls a thread's first function from
    // such code. Needed where no table marks it as outermost (musl; on arm, tables cannot).
    bool (*ends_thread)(std::span<const std::byte> code);

    // The row for the instruction at code[at] if it belongs to CPython's perf trampoline (Python/asm_trampoline*.S),
    // which has no unwind table. A return address must follow the trampoline's call. Null if CPython has no trampoline
    // here.
    std::optional<FrameRow> (*trampoline_row)(std::span<const std::byte> code, std::size_t at,
                                              bool return_address) = nullptr;
    // Bytes that trampoline_row needs before `at`, and from `at` on.
    std::uint8_t trampoline_before = 0, trampoline_after = 0;

    // The functions below are null where compilers always emit tables.

    // The row of a frame without a table, inferred from its code. Valid only if its return address follows a call.
    std::optional<FrameRow> (*row_by_code)(const CodeReader& read, std::uint64_t pc, bool return_address) = nullptr;

    // Whether a call instruction ends at `address`, an address as stored in memory (ARM: with the Thumb bit).
    bool (*follows_call)(std::uint64_t address, const MemoryReader& read) = nullptr;

    // Whether that call targets the function that contains `code`. A heuristic.
    bool (*calls)(std::uint64_t return_address, std::uint64_t code, const MemoryReader& read) = nullptr;
};

extern const ArchInfo arch_x86_64, arch_x86, arch_aarch64, arch_arm;
const ArchInfo& arch_info(Arch arch);

}  // namespace flamewire::unwind
