// Walks a stack: takes registers and a copy of the top of the stack, returns frames. No perf, no sockets; any host
// walks any architecture. For each frame, in this order: the rule cache; a rule compiled on demand from .eh_frame,
// .debug_frame or, on ARM, .ARM.exidx; the code itself; libunwind if it is built in and the process has our own
// architecture; the frame pointer; the link register.
//
// Memory is the copied stack first, then read-only bytes of the module's file; never the live process. All memory that
// grows (rule cache, file pages, indexes) is bounded together by UnwinderOptions::memory_bytes. Eviction is by least
// recent use. Not thread-safe: use from one thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/bytes.h"
#include "base/code_address.h"
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
    // Significant bits of a user address on aarch64. Those above carry pointer authentication and tags.
    std::uint8_t aarch64_address_bits = 48;
    bool use_libunwind = true;  // if it is built in
    bool big_endian = false;    // of the target
    // Opens the tables of a module. Tests replace it.
    OpenTables open_tables = &ModuleTables::open;
};

// The top of a stack, copied when the registers were sampled.
struct StackCopy {
    std::uint64_t address = 0;  // of bytes[0]: the stack pointer
    Bytes bytes;
    bool cut = false;  // the stack is deeper: the copy has all the bytes that were requested
};

class Unwinder {
public:
    Unwinder(ModuleFiles& files, UnwinderOptions options = {});
    ~Unwinder();
    Unwinder(const Unwinder&) = delete;
    Unwinder& operator=(const Unwinder&) = delete;

    // Limits the work on tables (TableWork) until the next call. If never called, only the work of each stack is
    // limited.
    void begin_round();
    // Limits the work of the next calls of facts(). walk() and survey() call this themselves.
    void begin_stack();
    // Whether tables were not read to the end, so a later attempt may find more. stack_spent(): this stack alone
    // exceeded its limit.
    [[nodiscard]] bool work_spent() const;
    [[nodiscard]] bool stack_spent() const;

    // Clears `frames` and fills it with at most `max_depth` frames, innermost first. Returns why the walk stopped.
    // Never fails: at worst there is only the frame of the registers.
    StopReason walk(const Registers& start, const StackCopy& stack, CodeMap& map, std::size_t max_depth,
                    std::vector<Frame>& frames);

    // Where the last walk ended for lack of memory. With more of the stack it could continue there.
    struct Cut {
        Registers registers;      // of the outermost frame
        std::uint64_t pc_at = 0;  // where its caller's pc is stored; 0: unknown
    };
    [[nodiscard]] const Cut& cut() const;

    // Converts a saved pc to the form in Frame::pc.
    [[nodiscard]] std::uint64_t address_of(Arch arch, std::uint64_t saved_pc) const;

    // What the tables contain for one address, without a stack: can a frame-pointer walk leave this frame?
    struct PcFacts {
        bool mapped = false;              // there is code at the address
        bool known = false;               // a table covers the address
        bool frame_pointer_safe = false;  // its row follows the frame-pointer convention
        bool frame_pointer_same = false;  // the function has not changed the frame-pointer register: it is the caller's
        bool skips_caller = false;        // a frame-pointer walk goes from it to its caller's caller
        bool skips_caller_of_jit = false;          // as skips_caller, but a copy of the stack contains the caller
        bool root = false;                         // a walk ends here, at the outermost frame
        std::uint64_t row_start = 0, row_end = 0;  // runtime addresses for which the row holds; 0 without a row
    };
    PcFacts facts(Arch arch, CodeAddress pc, CodeMap& map);

    // Share of a module's code, weighted by function size, that keeps the frame-pointer convention in the middle of the
    // function. Samples 64 functions spread over its table. Code not from a compiler (program start, PLT entries) does
    // not count. All zero if the module has no table.
    struct Survey {
        std::uint32_t functions = 0;       // sampled
        double frame_pointer_share = 0.0;  // 0 to 1
        bool switches_stacks = false;      // ModuleTables::switches_stacks
    };
    Survey survey(ModuleId module, Arch arch);

    // Call if the file changed or its address space is permanently gone.
    void forget(ModuleId module);

    // Totals since construction.
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
