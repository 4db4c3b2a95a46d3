// Walks a stack: registers and a copy of the stack's top in, frames out. No perf, no sockets, any host walks any
// architecture. For each frame, in this order: the rule cache; a rule compiled on demand from .eh_frame, .debug_frame
// or, on ARM, .ARM.exidx; the code itself; libunwind where it is built in and the process is of our own architecture;
// the frame pointer; the link register.
//
// Memory is a view: the copied stack first, then read-only bytes of the module's file; never the live process. All
// memory that grows (rule cache, pages of files, indexes) is bounded by UnwinderOptions::memory_bytes together; what
// was used longest ago goes first. One thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "unwind/frame/frame.h"
#include "unwind/frame/registers.h"
#include "unwind/frame/stop_reason.h"
#include "unwind/tables/code_map.h"
#include "unwind/tables/module_tables.h"
#include "unwind/tables/table_work.h"

namespace flamewire::unwind {

inline constexpr std::size_t default_max_depth = 1024, highest_max_depth = 4096;

using OpenTables = Result<std::unique_ptr<ModuleTables>> (*)(ModuleId id, elf::ByteSource bytes, PageCache& pages,
                                                             TableWork& work);

struct UnwinderOptions {
    std::size_t memory_bytes = std::size_t{32} << 20;
    // Significant bits of a user address on aarch64; those above carry pointer authentication and tags.
    std::uint8_t aarch64_address_bits = 48;
    bool use_libunwind = true;  // where it is built in
    bool big_endian = false;    // of the target
    // Makes the tables of a module; tests have tables of their own.
    OpenTables open_tables = &ModuleTables::open;
};

// The top of a stack as it was copied when the registers were taken.
struct StackCopy {
    std::uint64_t address = 0;  // of bytes[0]: the stack pointer
    Bytes bytes;
    bool cut = false;  // the stack goes on beyond: as many bytes were copied as had been asked for
};

class Unwinder {
public:
    Unwinder(ModuleFiles& files, UnwinderOptions options = {});
    ~Unwinder();
    Unwinder(const Unwinder&) = delete;
    Unwinder& operator=(const Unwinder&) = delete;

    // Limits the work on tables (TableWork) until the next call; without any call, only that of each stack is limited.
    void begin_round();
    // Limits that of the next calls of facts(); walk() and survey() begin by themselves.
    void begin_stack();
    // Tables were not read to their end: another time there may be more to find. stack_spent(): as those of this stack
    // took too much by themselves.
    [[nodiscard]] bool work_spent() const;
    [[nodiscard]] bool stack_spent() const;

    // Clears `frames` and fills it, innermost first, with at most `max_depth`. Never fails: at worst there is the one
    // frame that the registers are, and the reason.
    StopReason walk(const Registers& start, const StackCopy& stack, CodeMap& map, std::size_t max_depth,
                    std::vector<Frame>& frames);

    // Where the last walk needed memory that it did not have: with more of the stack it goes on from there.
    struct Cut {
        Registers registers;      // of the outermost frame
        std::uint64_t pc_at = 0;  // where its caller's pc is; 0: not known
    };
    [[nodiscard]] const Cut& cut() const;

    // A saved pc as frames have it.
    [[nodiscard]] std::uint64_t address_of(Arch arch, std::uint64_t saved_pc) const;

    // What the tables say about one address, without any stack: may a frame-pointer walk leave this frame?
    struct PcFacts {
        bool mapped = false;              // code is there
        bool known = false;               // a table covers the address
        bool frame_pointer_safe = false;  // its row is the frame-pointer convention's
        bool frame_pointer_same = false;  // the function has not touched the frame-pointer register: it is the caller's
        bool skips_caller = false;        // a frame-pointer walk goes on from it to its caller's caller
        bool skips_caller_of_jit = false;          // as skips_caller, but a copy of the stack contains the caller
        bool root = false;                         // the outermost frame, if a walk comes here
        std::uint64_t row_start = 0, row_end = 0;  // runtime addresses for which the row holds; 0 without one
    };
    PcFacts facts(Arch arch, std::uint64_t pc, bool return_address, CodeMap& map);

    // Share of a module's code, by bytes of its functions, that keeps the frame-pointer convention in the middle of the
    // function: looks at 64 functions spread over its table. What no compiler made (the start of the program, PLT
    // entries) says nothing. Nothing when it has no table.
    struct Survey {
        std::uint32_t functions = 0;       // looked at
        double frame_pointer_share = 0.0;  // 0 to 1
        bool switches_stacks = false;      // ModuleTables::switches_stacks
    };
    Survey survey(ModuleId module, Arch arch);

    // The file changed or its address space is gone for good.
    void forget(ModuleId module);

    // All since construction.
    struct Counts {
        std::uint64_t walks = 0, frames = 0;
        std::array<std::uint64_t, stop_reasons> stopped{};
        std::array<std::uint64_t, ways_to_find> found{};
        std::uint64_t rules_compiled = 0;  // misses of the rule cache
    };
    [[nodiscard]] const Counts& counts() const;
    [[nodiscard]] std::size_t memory_bytes() const;

private:
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace flamewire::unwind
