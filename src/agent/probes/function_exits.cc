#include "agent/probes/function_exits.h"

#include <algorithm>

#include "unwind/code/arm_instruction.h"

namespace flamewire::agent {
namespace {

using Kind = unwind::CodeEffect::Kind;

#if defined(FLAMEWIRE_NATIVE_CODE_ONLY) && !defined(__arm__)
constexpr bool decodes_arm = false;
#else
constexpr bool decodes_arm = true;
#endif

// How far before a jump its address is computed, or registers are restored.
constexpr std::size_t most_before_jump = 12;
// How far before a return a probe may be.
constexpr std::size_t most_before_return = 24, most_before_end = 64;
constexpr std::uint32_t arm_pc = 1u << 15;

std::uint32_t word_of(std::span<const std::byte> code) {
    std::uint32_t word = 0;
    for (unsigned i = 0; i < 4; ++i) word |= std::to_integer<std::uint32_t>(code[i]) << 8 * i;
    return word;
}

// Linux emulates almost all instructions of 32-bit Arm. A hit at a conditional instruction counts only if its condition
// is true (arch/arm/probes/uprobes/core.c).
std::optional<ProbeInstruction> arm_instruction(std::span<const std::byte> code) {
    if (code.size() < 4) return std::nullopt;
    const std::uint32_t word = word_of(code);
    const bool conditional = word >> 28 < 14;
    const std::uint32_t unconditional = conditional ? (word & 0x0fff'ffff) | 0xe000'0000 : word;
    const unwind::CodeEffect effect = unwind::arm_effect(word), always = unwind::arm_effect(unconditional);
    ProbeInstruction found;
    const bool loads_pc = (unconditional & 0xfe10'8000) == 0xe810'8000;  // ldm
    found.returns = always.kind == Kind::returns || unconditional == 0xe1a0'f00e ||
                    (always.kind == Kind::pop && (always.mask & arm_pc) != 0) || loads_pc;
    found.may_jump = always.kind == Kind::jump;
    const bool call = word >> 24 == 0xeb;
    found.target = found.may_jump ? always.bytes
                   : call         ? 8 + (std::int64_t{static_cast<std::int32_t>(word << 8)} >> 6)
                                  : 0;
    const std::uint32_t group = word >> 25 & 7;
    const bool writes_pc = effect.kind == Kind::other && group < 4 && (word >> 12 & 0xf) == 15;
    found.jumps_indirect = !found.returns && (always.kind == Kind::indirect || writes_pc);
    found.ends_frame = always.kind == Kind::indirect;  // bx; switches use other instructions
    if (found.may_jump)
        found.instruction_class = conditional ? InstructionClass::conditional_branch : InstructionClass::jump;
    const bool leaves = found.returns || found.may_jump || found.jumps_indirect;
    found.falls_through = conditional || !leaves;
    if (!leaves && always.kind == Kind::call) found.instruction_class = InstructionClass::call;
    return found;
}

std::optional<ProbeInstruction> decode(unwind::Arch arch, std::span<const std::byte> code) {
    if (decodes_arm && arch == unwind::Arch::arm) return arm_instruction(code);
    return probe_instruction(arch, code);
}

struct Instruction {
    std::uint64_t address = 0;
    ProbeInstruction what;
    bool target = false;   // a jump leads here
    bool reached = false;  // from the entry
    bool locked = false;   // has a lock prefix, which glibc jumps over in processes with one thread
    [[nodiscard]] bool conditional() const { return what.may_jump && what.instruction_class != InstructionClass::jump; }
    [[nodiscard]] std::uint64_t end() const { return address + what.size; }
    [[nodiscard]] std::uint64_t jump_target() const { return address + static_cast<std::uint64_t>(what.target); }
};

class Search {
public:
    explicit Search(const ExitSearch& search) : search_(search), arm_(search.arch == unwind::Arch::arm) {}

    FunctionExits run() {
        for (const CodePart* part = next_part(0); part != nullptr; part = next_part(part->start + 1))
            if (!decode_part(*part)) return problem("an unknown instruction", problem_at_);
        for (Instruction& each : code_)
            if (each.what.may_jump && !mark_target(each)) return problem("a jump into an instruction", each.address);
        for (const Instruction& each : code_)
            if (calls_part(each)) return problem("a call of its own code", each.address);
        reach_all();
        for (std::size_t at = 0; at < code_.size(); ++at)
            if (!add_exit(at))
                return {.problem = problem_, .problem_at = code_[at].address, .other_code = found_.other_code};
        if (found_.exits.empty()) return problem("no return", search_.parts.front().start);
        return std::move(found_);
    }

private:
    static FunctionExits problem(std::string_view text, std::uint64_t at) {
        return {.problem = text, .problem_at = at};
    }

    // The part with the lowest address from there on. std::sort would add 1 KB to the agent.
    [[nodiscard]] const CodePart* next_part(std::uint64_t address) const {
        const CodePart* next = nullptr;
        for (const CodePart& part : search_.parts)
            if (part.start >= address && (next == nullptr || part.start < next->start)) next = &part;
        return next;
    }
    bool decode_part(const CodePart& part) {
        std::span<const std::byte> rest = std::as_bytes(std::span(part.code));
        std::uint64_t address = part.start;
        while (!rest.empty()) {
            const auto found = decode(search_.arch, rest);
            problem_at_ = address;
            if (!found || found->size > rest.size()) return false;
            code_.push_back({.address = address, .what = *found, .locked = rest[0] == std::byte{0xf0}});
            address += found->size;
            rest = rest.subspan(found->size);
        }
        return true;
    }

    [[nodiscard]] bool inside(std::uint64_t address) const {
        return std::ranges::any_of(search_.parts, [&](const CodePart& part) { return part.contains(address); });
    }
    // The instruction at `address`; nullptr if none starts there.
    Instruction* at(std::uint64_t address) {
        const auto found = std::ranges::lower_bound(code_, address, {}, &Instruction::address);
        if (found != code_.end() && found->address == address) return &*found;
        const bool after_lock =
            found != code_.begin() && std::prev(found)->locked && std::prev(found)->address + 1 == address;
        return after_lock ? &*std::prev(found) : nullptr;
    }
    bool mark_target(const Instruction& jump) {
        const std::uint64_t target = jump.jump_target();
        if (!inside(target)) return true;
        Instruction* const found = at(target);
        if (found != nullptr) found->target = true;
        return found != nullptr;
    }

    // LLVM can move code into functions of these names.
    [[nodiscard]] bool calls_part(const Instruction& each) const {
        if (each.what.instruction_class != InstructionClass::call || each.what.target == 0) return false;
        return std::any_of(search_.parts.begin() + 1, search_.parts.end(),
                           [&](const CodePart& part) { return part.start == each.jump_target(); });
    }

    // Marks what is reached without exceptions. Literals of 32-bit Arm are not.
    void reach_all() {
        std::vector<std::uint64_t> pending{search_.parts.front().start};
        while (!pending.empty()) {
            Instruction* next = at(pending.back());
            pending.pop_back();
            if (next == nullptr || next->reached) continue;
            next->reached = true;
            if (next->what.may_jump) pending.push_back(next->jump_target());
            const bool jumps = next->what.may_jump && !next->conditional();
            if (!jumps && !next->what.jumps_indirect && !(next->what.returns && !next->what.falls_through))
                pending.push_back(next->end());
        }
    }

    // False: `problem_` is why it is not certain how the function ends.
    bool add_exit(std::size_t index) {
        const Instruction& each = code_[index];
        if (arm_ && !each.reached) return true;
        if (each.what.returns) {
            add_return(index);
            return true;
        }
        if (each.what.may_jump && !inside(each.jump_target())) return add_jump(each);
        if (each.what.jumps_indirect) return add_indirect(index);
        const bool last = !inside(each.end());
        problem_ = "code that continues behind its end";
        return !last || !each.reached || !(each.what.falls_through || each.conditional());
    }

    // The kernel counts a conditional instruction only on 32-bit Arm if its condition is true.
    bool add_jump(const Instruction& jump) {
        // Without a switch, only exceptions lead to code that no jump reaches. They leave the function here.
        if (!jump.reached && !has_indirect() && !entered()) return true;
        const std::uint64_t target = jump.jump_target();
        const bool counts_all = jump.conditional() && !arm_;
        const bool function = search_.is_function && search_.is_function(target);
        const bool leaves = function || (search_.is_balanced && search_.is_balanced(jump.address));
        problem_ =
            counts_all ? "a conditional jump to other code" : "a jump to code that is not known to be a function";
        if (counts_all ? !function : !leaves) found_.other_code = target;
        if (counts_all || !leaves || entered()) return false;
        add(jump, true);
        return true;
    }

    // Switches jump to other parts of the function, and calls through pointers that are the last action leave it.
    bool add_indirect(std::size_t index) {
        const Instruction& jump = code_[index];
        const bool has_address = jump.what.target != 0;
        if (has_address && search_.table_entry) {
            const auto entry = search_.table_entry(static_cast<std::uint64_t>(jump.what.target));
            if (entry && inside(*entry)) return true;
        }
        problem_ = "a jump to an unknown address";
        bool ends_frame = arm_ && jump.what.ends_frame;
        for (std::size_t i = index, n = 0; i-- > 0 && n < most_before_jump; ++n) {
            const Instruction& before = code_[i];
            if (before.end() != code_[i + 1].address) break;
            if (before.what.adds && before.what.reg == jump.what.reg) return true;
            ends_frame = ends_frame || before.what.ends_frame;
            if (!before.what.falls_through || code_[i + 1].target) break;
        }
        if (search_.arch == unwind::Arch::x86) ends_frame = false;  // it also pops arguments of calls
        if (!ends_frame && !jumps_reached()) return false;
        add(jump, true);
        return true;
    }

    void add(const Instruction& at, bool tail_call) {
        const bool emulated = search_.emulated.contains(at.what.instruction_class);
        const std::uint64_t target = tail_call && at.what.may_jump ? at.jump_target() : 0;
        found_.exits.push_back({.address = at.address, .emulated = emulated, .tail_call = tail_call, .target = target});
    }

    // The probe may be before the return, at an instruction that is cheaper to probe.
    void add_return(std::size_t index) {
        const Instruction& last = code_[index];
        const bool fixed =
            search_.needs.entry || last.what.falls_through || search_.emulated.contains(last.what.instruction_class);
        for (std::size_t i = index, n = 0; !fixed && i-- > 0 && n < most_before_return; ++n) {
            const Instruction& before = code_[i];
            if (before.end() != code_[i + 1].address || code_[i + 1].target) break;
            const bool cheap = search_.emulated.contains(before.what.instruction_class);
            const bool passed =
                before.what.falls_through || (before.conditional() && never_returns(before.jump_target()));
            if (!passed || !is_simple()) break;
            if (cheap && !entered()) return add(before, false);
            if (!before.conditional() && (before.what.written & search_.needs.registers) != 0) break;
        }
        add(last, false);
    }

    // Whether the code from there to the end of its part has only calls: the last of them never returns.
    bool never_returns(std::uint64_t address) {
        const Instruction* found = at(address);
        if (found == nullptr) return false;
        for (std::size_t n = 0; n < most_before_end; ++n) {
            const ProbeInstruction& what = found->what;
            if (what.may_jump || what.jumps_indirect || what.returns) return false;
            const Instruction* const next = at(found->end());
            if (next == nullptr) return what.instruction_class == InstructionClass::call;
            found = next;
        }
        return false;
    }

    // Then no indirect jump leads into the function: the code of a switch has jumps or returns that only it reaches.
    [[nodiscard]] bool jumps_reached() const {
        return std::ranges::all_of(code_, [](const Instruction& each) {
            const ProbeInstruction& what = each.what;
            return each.reached || !(what.may_jump || what.jumps_indirect || what.returns ||
                                     what.instruction_class == InstructionClass::call);
        });
    }
    // Without switches all jumps are known, and without code that only a catch reaches, a call that never returns ends
    // the function.
    bool is_simple() {
        if (!simple_)
            simple_ = !search_.catches && !has_indirect() && std::ranges::none_of(code_, [](const Instruction& each) {
                return each.what.instruction_class == InstructionClass::call && !each.reached;
            });
        return *simple_;
    }
    [[nodiscard]] bool has_indirect() const {
        return std::ranges::any_of(code_, [](const Instruction& each) { return each.what.jumps_indirect; });
    }
    bool entered() {
        if (!entered_) entered_ = !search_.entered_from_outside || search_.entered_from_outside();
        return *entered_;
    }

    const ExitSearch& search_;
    const bool arm_;
    std::vector<Instruction> code_;  // by address
    FunctionExits found_;
    std::string_view problem_;
    std::uint64_t problem_at_ = 0;
    std::optional<bool> simple_, entered_;
};

bool is_x86(unwind::Arch arch) { return arch == unwind::Arch::x86_64 || arch == unwind::Arch::x86; }

// A jump or call with an operand of 4 bytes. Jumps with one byte stay in their function.
std::optional<Branch> x86_branch(std::span<const std::byte> code, std::uint64_t address) {
    constexpr std::size_t operand_bytes = 4;
    const auto first = std::to_integer<unsigned>(code[0]);
    const bool call = first == 0xe8, jump = first == 0xe9;
    const bool conditional = first == 0x0f && code.size() > 1 && std::to_integer<unsigned>(code[1]) >> 4 == 8;
    const std::size_t operand = conditional ? 2 : 1, size = operand + operand_bytes;
    if (!(call || jump || conditional) || size > code.size()) return std::nullopt;
    const auto distance = static_cast<std::int32_t>(word_of(code.subspan(operand)));
    return Branch{address, address + size + static_cast<std::uint64_t>(std::int64_t{distance}), call};
}

std::optional<Branch> branch_of(unwind::Arch arch, std::span<const std::byte> code, std::uint64_t address) {
    if (is_x86(arch)) return x86_branch(code, address);
    const auto found = decode(arch, code);
    const bool call = found && found->instruction_class == InstructionClass::call && found->target != 0;
    if (!found || !(found->may_jump || call)) return std::nullopt;
    return Branch{address, address + static_cast<std::uint64_t>(found->target), call};
}

}  // namespace

FunctionExits find_exits(const ExitSearch& search) { return Search(search).run(); }

bool any_branch(unwind::Arch arch, std::span<const std::byte> code, std::uint64_t address,
                const std::function<bool(const Branch&)>& wanted) {
    const std::size_t step = is_x86(arch) ? 1 : 4;
    for (std::size_t at = 0; at < code.size(); at += step) {
        const auto found = branch_of(arch, code.subspan(at), address + at);
        if (found && wanted(*found)) return true;
    }
    return false;
}

}  // namespace flamewire::agent
