// Converts table rows to equivalent compact rules, where possible.
#include "unwind/tables/rule.h"

#include <limits>
#include <optional>

namespace flamewire::unwind {

namespace {

using Kind = RegisterRule::Kind;

template <class Integer>
std::optional<Integer> fit(std::int64_t value) {
    if (value < std::numeric_limits<Integer>::min() || value > std::numeric_limits<Integer>::max()) return std::nullopt;
    return static_cast<Integer>(value);
}

// `offset` in words. nullopt if it is not a multiple of the word size or too large.
std::optional<std::int16_t> in_words(std::int64_t offset, std::uint8_t word_size) {
    if (offset % word_size != 0) return std::nullopt;
    return fit<std::int16_t>(offset / word_size);
}

bool compile_return(const RegisterRule& from, std::uint8_t column, const ArchInfo& arch, Rule& rule) {
    if (from.kind == Kind::same && column == arch.names.link) {
        rule.return_in_link = true;
        return true;
    }
    const auto words = in_words(from.offset, arch.names.word_size);
    if (from.kind != Kind::at_cfa || !words) return false;
    rule.return_at = *words;
    return true;
}

bool compile_preserved(const FrameRow& row, const ArchInfo& arch, Rule& rule) {
    for (std::size_t position = 0; position < arch.preserved_count; ++position) {
        const RegisterRule& from = row.registers[arch.preserved[position]];
        const auto bit = static_cast<std::uint16_t>(1u << position);
        if (from.kind == Kind::same) continue;
        if (from.kind == Kind::undefined) {
            rule.lost |= bit;
            continue;
        }
        const auto words = in_words(from.offset, arch.names.word_size);
        if (from.kind != Kind::at_cfa || !words) return false;
        rule.saved |= bit;
        rule.saved_at[position] = *words;
    }
    return true;
}

}  // namespace

Rule compile_rule(const FrameRow& row, const ArchInfo& arch) {
    Rule rule;
    if (row.return_column >= max_registers) return rule;
    const RegisterRule& return_rule = row.registers[row.return_column];
    if (return_rule.kind == Kind::undefined) {
        rule.kind = Rule::Kind::root;
        return rule;
    }
    // This would mean that the caller's pc is this frame's pc. No table means that.
    if (return_rule.kind == Kind::same && row.return_column == arch.names.pc) return rule;

    rule.kind = Rule::Kind::row;
    // A signal frame restores every register, so a compact rule would lose some.
    if (row.signal_frame || row.cfa_is_expression || row.cfa_register >= arch.names.count) return rule;
    if (row.registers[arch.names.sp].kind != Kind::same) return rule;
    const auto cfa_offset = fit<std::int32_t>(row.cfa_offset);
    Rule compact;
    if (!cfa_offset || !compile_return(return_rule, row.return_column, arch, compact) ||
        !compile_preserved(row, arch, compact))
        return rule;
    compact.kind = Rule::Kind::compact;
    compact.cfa_register = row.cfa_register;
    compact.cfa_offset = *cfa_offset;
    compact.frame_pointer_safe = arch.frame_pointer_row(row);
    compact.other_stack = row.other_stack;
    compact.skips_caller = row.skips_caller;
    return compact;
}

bool leaves_frame_pointer(const Rule& rule, const ArchInfo& arch) {
    if (rule.kind != Rule::Kind::compact) return false;
    for (std::size_t position = 0; position < arch.preserved_count; ++position) {
        if (arch.preserved[position] != arch.names.frame_pointer) continue;
        const bool untouched = ((rule.saved | rule.lost) >> position & 1) == 0;
        return untouched || saved_below_sp(rule, position, arch.names);
    }
    return false;
}

}  // namespace flamewire::unwind
