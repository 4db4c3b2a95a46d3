// Compiles table rows to cached rules.
#include "unwind/walk/rule_source.h"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <utility>

namespace flamewire::unwind {

namespace {

// The share of memory for rules: 1/16 (32,768 rules in 32 MiB).
constexpr std::size_t rule_share = 16;
// A row takes almost 1 KiB.
constexpr std::size_t row_share = 64, row_bytes = 1024;
// Compilers emit expressions of a few bytes.
constexpr std::size_t max_expression_bytes = 1024;
// The average cost of opening, searching and reading pages.
constexpr std::uint64_t work_of_rule = 1000;
// _start is shorter in every libc.
constexpr std::uint64_t entry_size = 64;

std::size_t rest_of(std::size_t memory_bytes) {
    return memory_bytes - memory_bytes / rule_share - memory_bytes / row_share;
}

std::uint32_t clamped(std::uint64_t distance) {
    return static_cast<std::uint32_t>(std::min<std::uint64_t>(distance, std::numeric_limits<std::uint32_t>::max()));
}

// The bytes before and at a pc: up to 16 each, fewer near the end of a segment.
class Code {
public:
    Code(ModuleTables& tables, std::uint64_t pc) : tables_(tables), pc_(pc) {
        while (size_ > 0 && !tables.read(pc, std::span(bytes_).subspan(reach, size_))) --size_;
    }
    [[nodiscard]] std::span<const std::byte> at() const { return std::span(bytes_).subspan(reach, size_); }
    std::span<const std::byte> before() {
        const bool there = tables_.read(pc_ - reach, std::span(bytes_).first(reach));
        return std::span(bytes_).first(there ? reach : 0);
    }

private:
    static constexpr std::size_t reach = 16;
    ModuleTables& tables_;
    std::uint64_t pc_;
    std::array<std::byte, 2 * reach> bytes_{};
    std::size_t size_ = reach;
};

// The rule at a function's first instruction: the return address is where the call stored it.
Rule untouched_frame(const ArchInfo& arch) {
    const RegisterNames& names = arch.names;
    FrameRow row;
    row.cfa_register = names.sp;
    row.return_column = names.return_column;
    if (names.link == no_register) {
        row.cfa_offset = names.word_size;
        row.registers[names.return_column] = {.kind = RegisterRule::Kind::at_cfa, .offset = -row.cfa_offset};
    }
    return compile_rule(row, arch);
}

// The rule inferred from the code where no table covers it.
Rule rule_of_code(Code& code, bool return_address, const ArchInfo& arch) {
    Rule rule;
    if (!return_address && arch.is_stub(code.before(), code.at())) return untouched_frame(arch);
    if (return_address && arch.ends_thread(code.at())) rule.kind = Rule::Kind::root;
    return rule;
}

// The rule that results from following the code. If it is not compact, `row` holds it.
Rule rule_by_following(ModuleTables& tables, std::uint64_t pc, bool return_address, const ArchInfo& arch,
                       std::optional<FrameRow>& row) {
    const CodeReader read = [&tables](std::uint64_t address, std::span<std::byte> out) {
        return tables.read(address, out);
    };
    row = arch.row_by_code(read, pc, return_address);
    Rule rule;
    if (row) rule = compile_rule(*row, arch);
    rule.kind = rule.kind == Rule::Kind::compact ? Rule::Kind::inferred
                : rule.kind == Rule::Kind::row   ? Rule::Kind::inferred_row
                                                 : Rule::Kind::none;
    return rule;
}

bool has_row(const Rule& rule) { return rule.kind == Rule::Kind::row || rule.kind == Rule::Kind::inferred_row; }

bool is_entry(const ModuleTables& tables, std::uint64_t pc) {
    const std::uint64_t entry = tables.entry();
    return entry != 0 && pc - entry < entry_size;
}

}  // namespace

RuleSource::RuleSource(ModuleFiles& files, OpenTables open_tables, std::size_t memory_bytes)
    : cache_(memory_bytes / rule_share),
      rows_(memory_bytes / row_share / row_bytes),
      modules_(files, open_tables, rest_of(memory_bytes), work_) {}

const Rule& RuleSource::compile(const RuleKey& key, Arch arch) {
    ++compiled_;
    work_.add(work_of_rule);
    if (work_.spent()) return no_rule_;
    const Rule made = make(key, arch_info(arch));
    // Tables that were not read to the end give no result for the address.
    return work_.spent() ? no_rule_ : cache_.put(key, made);
}

bool RuleSource::may_return_to(const RuleKey& key, Arch arch, std::uint64_t pc) {
    Rule found = rule(key, arch);
    if (!found.call_checked) {
        if (work_.spent()) return false;
        find_call(key, arch_info(arch), found);
        cache_.put(key, found);
    }
    return found.kind == Rule::Kind::signal_return || ((pc & 1) != 0 ? found.after_odd_call : found.after_even_call);
}

void RuleSource::find_call(const RuleKey& key, const ArchInfo& arch, Rule& rule) {
    rule.call_checked = true;
    ModuleTables* tables = modules_.open(key.module());
    if (tables == nullptr) return;
    const MemoryReader read = [tables](std::uint64_t address, std::size_t size) -> std::optional<std::uint64_t> {
        std::array<std::byte, 8> bytes{};
        if (size > bytes.size() || !tables->read(address, std::span(bytes).first(size))) return std::nullopt;
        std::uint64_t value = 0;
        for (std::size_t i = size; i-- > 0;) value = value << 8 | std::to_integer<std::uint64_t>(bytes[i]);
        return value;
    };
    const std::uint64_t address = key.address + 1;
    rule.after_even_call = arch.follows_call(address, read);
    rule.after_odd_call = arch.follows_call(address | 1, read);
}

Rule RuleSource::make(const RuleKey& key, const ArchInfo& arch) {
    Rule rule;
    ModuleTables* tables = modules_.open(key.module());
    if (tables == nullptr || &arch_info(tables->arch()) != &arch) return rule;
    std::optional<FrameRow> row = tables->row_at(key.address);
    modules_.account(key.module());
    if (row && row->expressions.size() <= max_expression_bytes) rule = compile_rule(*row, arch);

    // Signal trampolines: no table of libc or the kernel covers all of them, and arm64's describes another frame. A
    // handler returns to the first byte, so the row of the byte before may belong to another function.
    const std::uint64_t pc = key.address + (key.is_return_address() ? 1 : 0);
    const bool may_be_signal_return =
        rule.kind == Rule::Kind::none || rule.kind == Rule::Kind::root || row->signal_frame || row->end <= pc;
    if (may_be_signal_return) {
        Code code(*tables, pc);
        if (arch.is_signal_return(code.at())) {
            rule = {};
            rule.kind = Rule::Kind::signal_return;
        } else if (rule.kind == Rule::Kind::none) {
            rule = rule_of_code(code, key.is_return_address(), arch);
        }
        if (rule.kind == Rule::Kind::none && arch.row_by_code != nullptr && !unwind::is_entry(*tables, pc))
            rule = rule_by_following(*tables, pc, key.is_return_address(), arch, row);
    }
    if (row && row->start <= key.address && key.address < row->end) {
        rule.before = clamped(key.address - row->start);
        rule.after = clamped(row->end - key.address);
    }
    if (has_row(rule)) rule.slot = rows_.put(key, *std::move(row));
    return rule;
}

const FrameRow* RuleSource::row(const Rule& rule, const RuleKey& key, Arch arch) {
    if (const FrameRow* row = rows_.find(rule.slot, key)) return row;
    const Rule& again = compile(key, arch);
    return has_row(again) ? rows_.find(again.slot, key) : nullptr;
}

bool RuleSource::is_entry(ModuleId module, std::uint64_t pc) {
    ModuleTables* tables = modules_.open(module);
    return tables != nullptr && unwind::is_entry(*tables, pc);
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
