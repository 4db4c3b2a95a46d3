#include "unwind/code/follow_code.h"

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "base/varint.h"
#include "unwind/code/code_path.h"

namespace flamewire::unwind {
namespace {

using Kind = CodeEffect::Kind;

// Limits: paths that wait to be followed, and the distance from the start in bytes.
constexpr std::size_t most_paths = 24;
constexpr std::uint64_t furthest = 32 * 1024;

void set_cfa(const Value& cfa, FrameRow& row) {
    if (!cfa.indirect) {
        row.cfa_register = cfa.reg;
        row.cfa_offset = cfa.add;
        return;
    }
    constexpr std::uint8_t deref = 0x06, plus_uconst = 0x23, breg0 = 0x70;  // DWARF operations DW_OP_*
    std::string& bytes = row.expressions;
    bytes = {static_cast<char>(breg0 + cfa.reg), 0, plus_uconst};
    append_varint(bytes, static_cast<std::uint64_t>(cfa.at));
    bytes += {deref, plus_uconst};
    append_varint(bytes, static_cast<std::uint64_t>(cfa.add));
    row.cfa_is_expression = true;
    row.cfa_expression = {0, static_cast<std::uint32_t>(bytes.size())};
}

std::optional<FrameRow> row_of(const CodeConvention& convention, const CodePath& path, std::uint64_t address) {
    const auto& registers = path.registers;
    const Value& cfa = registers[convention.sp];
    if (cfa.kind != Value::Kind::address) return {};
    FrameRow row;
    row.start = address;
    row.end = address + 1;
    set_cfa(cfa, row);
    row.return_column = convention.return_column;
    const auto rule_of = [&](const Value& value) -> RegisterRule {
        // A row cannot express a load relative to a register other than the CFA's.
        if (value.kind != Value::Kind::stored || !value.same_base(cfa)) return {.kind = RegisterRule::Kind::undefined};
        return {.kind = RegisterRule::Kind::at_cfa, .offset = value.add - cfa.add};
    };
    const bool by_link = convention.link != no_register && registers[convention.pc] == initial(convention.link);
    if (!by_link) {
        RegisterRule& rule = row.registers[convention.return_column];
        rule = rule_of(registers[convention.pc]);
        // The return address must lie below the caller's frame. Otherwise this was not a return.
        if (rule.kind != RegisterRule::Kind::at_cfa || rule.offset >= 0) return {};
    }
    // The function would return with more on the stack than at its entry.
    if (cfa.reg == convention.sp && !cfa.indirect && cfa.add < (by_link ? 0 : convention.word_size)) return {};
    for (std::uint8_t number = 0; number < most_registers; ++number)
        if (has(convention.preserved, number) && registers[number] != initial(number))
            row.registers[number] = rule_of(registers[number]);
    return row;
}

// All paths from one address. The one without the jump is followed first.
class CodePaths {
public:
    // `goal`: paths also end at this address.
    CodePaths(const CodeView& code, const CodeConvention& convention, CodePath start,
              std::optional<std::uint64_t> goal = {})
        : code_(code), convention_(convention), middle_(start.at), goal_(goal), left_(convention.most_instructions) {
        paths_.push_back(std::move(start));
    }

    enum class End : std::uint8_t { none, returns, returns_if_guessed, may_have_returned, goal };
    // Whether any path pushed the initial link register: the function had not set up its frame at the start.
    [[nodiscard]] bool pushed_link() const { return pushed_link_; }
    // Follows paths until one ends with another result than `none`, and returns that path in `path`.
    End next(CodePath& path) {
        while (!paths_.empty()) {
            path = std::move(paths_.back());
            paths_.pop_back();
            if (const End end = follow(path); end != End::none) return end;
        }
        return End::none;
    }

private:
    [[nodiscard]] bool is_near(std::uint64_t at) const { return at - middle_ + furthest < 2 * furthest; }
    // Whether no path has visited this address yet.
    bool enter(std::uint64_t at) {
        const auto from = static_cast<std::size_t>(at - middle_ + furthest);
        const std::uint64_t bit = std::uint64_t{1} << (from % 64);
        std::uint64_t& word = seen_[from / 64];
        const bool first = (word & bit) == 0;
        word |= bit;
        return first;
    }

    // An indirect jump is a tail call, a switch or the end of a loop. In each case the code after it expects the same
    // stack depth: it is another function, or another part of this one. Such guesses are followed last.
    void guess_behind(const CodePath& path, std::uint8_t size) {
        if (paths_.size() >= most_paths) return;
        paths_.insert(paths_.begin(), path);
        paths_.front().at += size;
        paths_.front().guessed = true;
    }

    End follow(CodePath& path) {
        while (left_-- > 0) {
            if (goal_ && path.at == *goal_) return End::goal;
            const auto effect = is_near(path.at) && enter(path.at) ? code_.effect_at(path.at) : std::nullopt;
            if (!effect) return End::none;
            const std::uint64_t target = path.at + static_cast<std::uint64_t>(effect->bytes);
            pushed_link_ |=
                pushes_link(convention_, *effect) && path.registers[convention_.link].kind == Value::Kind::address;
            if (effect->kind == Kind::indirect && convention_.link == no_register) guess_behind(path, effect->size);
            const StepResult result = run(convention_, path, *effect);
            if (result == StepResult::ends) return End::none;
            if (result == StepResult::returns) return path.guessed ? End::returns_if_guessed : End::returns;
            if (result == StepResult::may_have_returned) return End::may_have_returned;
            path.at += effect->size;
            if (effect->kind == Kind::jump) {
                path.at = target;
                if (is_near(target)) continue;
                return_to_caller(convention_, path);
                return End::may_have_returned;
            }
            if (effect->kind == Kind::branch && effect->bytes != 0 && paths_.size() < most_paths) {
                paths_.push_back(path);
                paths_.back().at = target;
            }
        }
        return End::none;
    }

    const CodeView& code_;
    const CodeConvention& convention_;
    std::uint64_t middle_;
    std::optional<std::uint64_t> goal_;
    int left_;
    bool pushed_link_ = false;
    std::vector<CodePath> paths_{};
    std::array<std::uint64_t, 2 * furthest / 64> seen_{};
};

// Prefers the first path that certainly returns over one that may have returned.
std::optional<FrameRow> row_to_return(const CodeView& code, const CodeConvention& convention, std::uint64_t address,
                                      bool return_address) {
    CodePaths paths(code, convention, CodePath(convention, address, return_address));
    CodePath path;
    std::optional<FrameRow> likely;
    for (;;) {
        const CodePaths::End end = paths.next(path);
        if (end == CodePaths::End::none) break;
        if (end == CodePaths::End::may_have_returned && likely) continue;
        const auto row = row_of(convention, path, address);
        if (row && end != CodePaths::End::may_have_returned) return row;
        if (!likely) likely = row;
    }
    // The function never returns, but its prologue is still ahead.
    if (!likely && paths.pushed_link()) {
        likely.emplace();
        likely->start = address;
        likely->end = address + 1;
        likely->cfa_register = convention.sp;
        likely->return_column = convention.return_column;
    }
    return likely;
}

// The row at `address`, where a path from the function's first push ended.
std::optional<FrameRow> row_behind(const CodeConvention& convention, const CodePath& path, std::uint64_t address) {
    FrameRow row;
    row.start = address;
    row.end = address + 1;
    row.return_column = convention.return_column;
    const auto from_start = [&](std::uint8_t number) {
        const Value& value = path.registers[number];
        const bool of_sp = value.kind == Value::Kind::address && value.same_base(initial(convention.sp));
        return of_sp ? std::optional(value.add) : std::nullopt;
    };
    std::uint8_t base = convention.sp;
    std::optional<std::int64_t> distance = from_start(base);
    for (std::uint8_t number = 0; number < most_registers && !distance; ++number) {
        if (!has(convention.frame_pointers, number)) continue;
        base = number;
        distance = from_start(base);
    }
    if (!distance) return {};
    row.cfa_register = base;
    row.cfa_offset = -*distance;
    for (const Store& store : path.stores) {
        const std::uint8_t number = store.what.reg;
        const bool kept = store.what == initial(number) && store.where.same_base(initial(convention.sp)) &&
                          (has(convention.preserved, number) || number == convention.link);
        if (kept) row.registers[number] = {.kind = RegisterRule::Kind::at_cfa, .offset = store.where.add};
    }
    if (row.registers[convention.link].kind != RegisterRule::Kind::at_cfa) return {};
    return row;
}

// Functions that do not return, for example endless loops, usually still save the link register. Starts from the last
// push of it before `address`.
std::optional<FrameRow> row_from_start(const CodeView& code, const CodeConvention& convention, std::uint64_t address) {
    constexpr std::uint64_t longest = 2048;
    for (std::uint64_t back = convention.alignment; back <= longest && back <= address; back += convention.alignment) {
        const auto effect = code.effect_at(address - back);
        if (!effect) return {};
        if (!pushes_link(convention, *effect)) continue;
        CodePaths paths(code, convention, CodePath(convention, address - back, false), address);
        CodePath path;
        for (;;) {
            const CodePaths::End end = paths.next(path);
            if (end == CodePaths::End::goal) return row_behind(convention, path, address);
            if (end == CodePaths::End::none) return {};
        }
    }
    return {};
}

}  // namespace

std::optional<FrameRow> row_by_following(const CodeView& code, const CodeConvention& convention, std::uint64_t address,
                                         bool return_address) {
    if (auto row = row_to_return(code, convention, address, return_address)) return row;
    if (convention.link == no_register) return std::nullopt;  // nothing marks the start of a function
    return row_from_start(code, convention, address);
}

}  // namespace flamewire::unwind
