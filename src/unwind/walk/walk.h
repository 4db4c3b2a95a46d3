// One walk of one stack: the state between two frames, and the ways to get from one to the next.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/code_address.h"
#include "unwind/arch/arch.h"
#include "unwind/walk/code_pieces.h"
#include "unwind/walk/libunwind_step.h"
#include "unwind/walk/rule_source.h"
#include "unwind/walk/stack_view.h"
#include "unwind/walk/unwinder.h"

namespace flamewire::unwind {

// The address bits of a saved pc: without pointer authentication, without the Thumb bit.
std::uint64_t code_mask_of(Arch arch, const UnwinderOptions& options);

class Walk {
public:
    // State that outlives a walk. `libunwind` is null if it is not to be used.
    struct Means {
        RuleSource& rules;
        LibunwindStep* libunwind;
        const UnwinderOptions& options;
        Unwinder::Counts& counts;
    };

    Walk(Means means, const Registers& start, const StackCopy& stack, CodeMap& map, std::size_t max_depth,
         std::vector<Frame>& frames);
    Walk(const Walk&) = delete;
    Walk& operator=(const Walk&) = delete;

    StopReason run();
    // The registers in the outermost frame that was found.
    [[nodiscard]] const Registers& registers() const { return registers_; }
    // The address of its caller's pc that could not be read. 0: the walk ended for another reason.
    [[nodiscard]] std::uint64_t unread_pc_at() const { return unread_pc_at_; }

private:
    // nullopt: the walk continues, and the registers are the caller's.
    using Stop = std::optional<StopReason>;

    Stop leave_frame();
    Stop by_compact_rule(const Rule& rule, FoundBy how);
    Stop by_inferred_rule(const Rule& rule);
    [[nodiscard]] CodeAddress code_address() const { return {pc_, return_address_}; }
    std::optional<std::uint64_t> return_address_by(const Rule& rule);
    Stop in_code_without_file(const CodePiece& piece);
    Stop by_row(const Rule& rule, const RuleKey& key);
    Stop by_signal_return();
    Stop without_rule();
    Stop without_map();
    bool can_return_to(std::uint64_t pc);
    bool by_libunwind(Stop& stop);
    bool by_frame_pointer();
    bool by_link_register();

    Stop go_on(const Registers& caller, FoundBy how, bool return_address);
    Stop push(FoundBy how, std::uint64_t cfa);
    [[nodiscard]] bool in_entry();

    std::optional<std::uint64_t> read_stack(std::uint64_t address, std::size_t size);
    std::optional<std::uint64_t> read_memory(std::uint64_t address, std::size_t size);

    Means means_;
    const ArchInfo& arch_;
    CodeMap& map_;
    CodePieces pieces_;
    std::size_t max_depth_;
    std::vector<Frame>& frames_;

    StackView stack_;
    std::uint64_t address_mask_, code_mask_, preserved_mask_ = 0;
    std::size_t fp_position_ = 0;  // position of the frame pointer in ArchInfo::preserved

    // The frame to unwind.
    Registers registers_;
    std::uint64_t pc_ = 0, sp_ = 0;
    bool return_address_ = false;
    unsigned steps_inwards_ = 0;
    // A register is unknown because the place where it is saved was cut off.
    bool lost_by_cut_ = false;
    std::optional<std::uint64_t> failed_read_;
    std::uint64_t unread_pc_at_ = 0;
    std::uint32_t operations_left_ = 100'000;  // of expressions, in this walk
    bool may_open_ = true;                     // reads may open modules, which may close others

    MemoryReader stack_reader_, memory_reader_;
};

}  // namespace flamewire::unwind
