// From a table's row to a cached rule.
#include "unwind/rule_source.h"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <utility>

namespace flamewire::unwind {

namespace {

// Of all memory, one part in 16 for the rules (32,768 of them in 32 MiB).
constexpr std::size_t rule_share = 16;
// A row is most of a KiB.
constexpr std::size_t row_share = 64, row_bytes = 1024;
// Compilers write expressions of a few bytes.
constexpr std::size_t max_expression_bytes = 1024;
// _start of every libc is shorter.
constexpr std::uint64_t entry_size = 64;

std::size_t rest_of(std::size_t memory_bytes) {
    return memory_bytes - memory_bytes / rule_share - memory_bytes / row_share;
}

std::uint32_t clamped(std::uint64_t distance) {
    return static_cast<std::uint32_t>(std::min<std::uint64_t>(distance, std::numeric_limits<std::uint32_t>::max()));
}

bool is_signal_return(ModuleTables& tables, std::uint64_t pc, const ArchInfo& arch) {
    std::array<std::byte, 16> code{};
    for (std::size_t size = code.size(); size >= 4; --size) {  // shorter at the end of a segment
        const std::span<std::byte> bytes = std::span(code).first(size);
        if (tables.read(pc, bytes)) return arch.is_signal_return(bytes);
    }
    return false;
}

}  // namespace

RuleSource::RuleSource(ModuleFiles& files, OpenTables open_tables, std::size_t memory_bytes)
    : cache_(memory_bytes / rule_share),
      rows_(memory_bytes / row_share / row_bytes),
      modules_(files, open_tables, rest_of(memory_bytes)) {}

const Rule& RuleSource::compile(const RuleKey& key, Arch arch) {
    ++compiled_;
    const Rule rule = make(key, arch_info(arch));
    return cache_.put(key, rule);
}

Rule RuleSource::make(const RuleKey& key, const ArchInfo& arch) {
    Rule rule;
    ModuleTables* tables = modules_.open(key.module());
    if (tables == nullptr || &arch_info(tables->arch()) != &arch) return rule;
    std::optional<FrameRow> row = tables->row_at(key.address);
    modules_.account(key.module());
    if (row && row->expressions.size() <= max_expression_bytes) rule = compile_rule(*row, arch);

    // Signal trampolines: no table of libc or the kernel describes all of them, and arm64's describes another frame. A
    // handler returns to the first byte, where the row of the byte before may be that of another function.
    const std::uint64_t pc = key.address + (key.is_return_address() ? 1 : 0);
    const bool may_be_signal_return =
        rule.kind == Rule::Kind::none || rule.kind == Rule::Kind::root || row->signal_frame || row->end <= pc;
    if (may_be_signal_return && is_signal_return(*tables, pc, arch)) {
        rule = {};
        rule.kind = Rule::Kind::signal_return;
    }
    if (row && row->start <= key.address && key.address < row->end) {
        rule.before = clamped(key.address - row->start);
        rule.after = clamped(row->end - key.address);
    }
    if (rule.kind == Rule::Kind::row) rule.slot = rows_.put(key, *std::move(row));
    return rule;
}

const FrameRow* RuleSource::row(const Rule& rule, const RuleKey& key, Arch arch) {
    if (const FrameRow* row = rows_.find(rule.slot, key)) return row;
    const Rule& again = compile(key, arch);
    return again.kind == Rule::Kind::row ? rows_.find(again.slot, key) : nullptr;
}

bool RuleSource::is_entry(ModuleId module, std::uint64_t pc) {
    ModuleTables* tables = modules_.open(module);
    if (tables == nullptr) return false;
    const std::uint64_t entry = tables->entry();
    return entry != 0 && pc - entry < entry_size;
}

void RuleSource::forget(ModuleId module) {
    cache_.forget(module);
    rows_.forget(module);
    modules_.forget(module);
}

std::size_t RuleSource::memory_bytes() const {
    return cache_.memory_bytes() + rows_.memory_bytes() + modules_.memory_bytes();
}

}  // namespace flamewire::unwind
