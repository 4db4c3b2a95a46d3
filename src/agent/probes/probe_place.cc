#include "agent/probes/probe_place.h"

#include <algorithm>
#include <vector>

namespace flamewire::agent {
namespace {

using Code = std::span<const std::byte>;

constexpr std::size_t most_code = 65536;
// The stretch of code before the first branch is short. Far from the entry, more registers are overwritten.
constexpr int most_instructions = 8;

// Whether `offset` is the start of an instruction, or follows a lock prefix: glibc jumps over the prefix in processes
// with one thread.
bool is_start(const std::vector<bool>& starts, Code code, std::size_t offset) {
    return starts[offset] || (starts[offset - 1] && code[offset - 1] == std::byte{0xf0});
}

// Whether it is certain that no jump inside the function has a target in (entry, last]. Never certain with jumps to
// addresses in registers or memory (switches), or with branches to other parts, which may jump back. A jump that is not
// conditional and leaves the function is a tail call.
bool is_passed_once(const ProbedFunction& function, std::size_t last) {
    const Code code = function.code;
    if (!function.complete || code.size() > most_code) return false;
    std::vector<bool> starts(code.size());
    std::vector<std::size_t> targets;
    for (std::size_t at = 0; at < code.size();) {
        const auto found = probe_instruction(function.arch, code.subspan(at));
        if (!found || found->jumps_indirect) return false;
        starts[at] = true;
        if (found->may_jump) {
            const std::uint64_t target = at + static_cast<std::uint64_t>(found->target);
            if (target > 0 && target <= last) return false;
            if (target > 0 && target < code.size())
                targets.push_back(static_cast<std::size_t>(target));
            else if (target != 0 && found->instruction_class != InstructionClass::jump)
                return false;
        }
        at += found->size;
    }
    // A jump into an instruction shows that something else was data.
    return std::ranges::all_of(targets, [&](std::size_t target) { return is_start(starts, code, target); });
}

bool is_padding(InstructionClass each) {
    using enum InstructionClass;
    return each == nop || each == long_nop || each == hint;
}

}  // namespace

std::optional<ProbePlace> place_probe(const ProbedFunction& function, const ProbeNeeds& needs,
                                      InstructionClasses emulated) {
    ProbePlace entry;
    bool after_padding = true;
    std::size_t at = 0;
    for (int i = 0; i < most_instructions && at < function.code.size(); ++i) {
        const auto found = probe_instruction(function.arch, function.code.subspan(at));
        if (!found) break;
        const InstructionClass each = found->instruction_class;
        const bool cheap = emulated.contains(each) && each != InstructionClass::literal_load;
        if (at == 0) entry = {0, each, cheap};
        if (cheap) {
            // Only a prologue starts with a push, and no jump repeats a prologue: the stack would grow.
            const bool starts_prologue = each == InstructionClass::push && after_padding;
            if (at != 0 && !starts_prologue && !is_passed_once(function, at)) break;
            return ProbePlace{static_cast<std::uint32_t>(at), each, true};
        }
        if (needs.entry || !found->falls_through || (found->written & needs.registers) != 0) break;
        after_padding &= is_padding(each);
        at += found->size;
    }
    if (entry.instruction_class == InstructionClass::literal_load) return std::nullopt;
    return entry;
}

}  // namespace flamewire::agent
