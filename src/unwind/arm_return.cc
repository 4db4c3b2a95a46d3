// Runs the code on symbols: every register is what another one was at the start plus a constant, or a word of the stack.
#include "unwind/arm_return.h"

#include <array>
#include <bit>
#include <vector>

#include "unwind/arm_instruction.h"

namespace flamewire::unwind {
namespace {

using Kind = ArmEffect::Kind;

constexpr std::uint8_t first_preserved = 4, last_preserved = 11, sp = 13, lr = 14, pc = 15;
// Instructions in all ways together, ways that wait to be followed, words pushed on the way, and how far code may lie.
constexpr int most_instructions = 600;
constexpr std::size_t most_ways = 24, most_stores = 32;
constexpr std::uint64_t furthest = 32 * 1024;

// What a register or a word holds.
struct Value {
    enum class Kind : std::uint8_t { unknown, initial, stored };  // `reg` at the start + add; the word at `reg` + at
    Kind kind = Kind::unknown;
    std::uint8_t reg = 0;
    std::int64_t add = 0;
    bool operator==(const Value&) const = default;
};

struct Store {
    Value where;  // an `initial`
    Value what;
};

// The state on one way, before the instruction at `at`.
struct Way {
    std::uint64_t at = 0;
    std::array<Value, 16> registers{};
    std::vector<Store> stores{};

    Way() = default;
    Way(std::uint64_t start, bool return_address) : at(start) {
        for (std::uint8_t number = first_preserved; number <= last_preserved; ++number) keep(number);
        keep(sp);
        if (!return_address) keep(lr);
    }
    void keep(std::uint8_t number) { registers[number] = {.kind = Value::Kind::initial, .reg = number, .add = 0}; }
    Value& stack() { return registers[sp]; }

    [[nodiscard]] Value load(const Value& where) const {
        for (auto store = stores.rbegin(); store != stores.rend(); ++store)
            if (store->where == where) return store->what;
        return {.kind = Value::Kind::stored, .reg = where.reg, .add = where.add};
    }
};

enum class Fate : std::uint8_t { goes_on, returns, may_have_returned, ends };

// `way` behind the instruction. `returns`: the caller's registers are in it, pc among them. `may_have_returned`: it goes
// where nobody sees; that is how another function is called in this one's place, which returns by lr.
Fate run(Way& way, const ArmEffect& effect) {
    auto& registers = way.registers;
    switch (effect.kind) {
        case Kind::none:
        case Kind::branch:
        case Kind::jump:
            return Fate::goes_on;
        case Kind::call:
            for (const std::uint8_t number :
                 {std::uint8_t{0}, std::uint8_t{1}, std::uint8_t{2}, std::uint8_t{3}, std::uint8_t{12}, lr})
                registers[number] = {};
            return Fate::goes_on;
        case Kind::push: {
            // What is pushed behind a call that returned is an argument: lr is it in a prologue alone, so that call did
            // not return, and another function begins here.
            if ((effect.mask >> lr & 1) != 0 && registers[lr].kind == Value::Kind::unknown) return Fate::ends;
            way.stack().add -= effect.bytes;
            Value where = way.stack();
            if (where.kind == Value::Kind::unknown) return Fate::goes_on;
            for (std::uint8_t number = 0; number < pc; ++number) {
                if ((effect.mask >> number & 1) == 0) continue;
                if (way.stores.size() >= most_stores) return Fate::ends;
                way.stores.push_back({where, registers[number]});
                where.add += 4;
            }
            return Fate::goes_on;
        }
        case Kind::pop: {
            Value where = way.stack();
            way.stack().add += effect.bytes;
            for (std::uint8_t number = 0; number < 16; ++number) {
                if ((effect.mask >> number & 1) == 0) continue;
                registers[number] = where.kind == Value::Kind::unknown ? Value{} : way.load(where);
                where.add += 4;
            }
            return (effect.mask >> pc & 1) != 0 ? Fate::returns : Fate::goes_on;
        }
        case Kind::add:
            way.stack().add += effect.bytes;
            return Fate::goes_on;
        case Kind::add_to:
            if (registers[effect.reg].kind == Value::Kind::initial)
                registers[effect.reg].add += effect.bytes;
            else
                registers[effect.reg] = {};
            return Fate::goes_on;
        case Kind::copy_to:
            registers[effect.reg] = way.stack();
            registers[effect.reg].add += effect.bytes;
            return Fate::goes_on;
        case Kind::copy_from:
            way.stack() = registers[effect.reg].kind == Value::Kind::initial ? registers[effect.reg] : Value{};
            way.stack().add += effect.bytes;
            return Fate::goes_on;
        case Kind::compute_sp:  // until the frame pointer brings it back
            way.stack() = {};
            return Fate::goes_on;
        case Kind::returns:
            registers[pc] = registers[lr];
            return Fate::returns;
        case Kind::indirect:
            registers[pc] = registers[lr];
            return Fate::may_have_returned;
        case Kind::other:
            break;
    }
    return Fate::ends;
}

std::optional<FrameRow> row_of(const Way& way, std::uint64_t address) {
    const auto& registers = way.registers;
    const Value& cfa = registers[sp];
    if (cfa.kind != Value::Kind::initial) return {};
    FrameRow row;
    row.start = address;
    row.end = address + 1;
    row.cfa_register = cfa.reg;
    row.cfa_offset = cfa.add;
    row.return_column = lr;
    const auto rule_of = [&](const Value& value) -> RegisterRule {
        // A load relative to another register than the CFA cannot be said in a row.
        if (value.kind != Value::Kind::stored || value.reg != cfa.reg) return {.kind = RegisterRule::Kind::undefined};
        return {.kind = RegisterRule::Kind::at_cfa, .offset = value.add - cfa.add};
    };
    const Value untouched{.kind = Value::Kind::initial, .reg = lr, .add = 0};
    if (registers[pc] != untouched) {
        row.registers[lr] = rule_of(registers[pc]);
        // Below the caller's frame, or it was no return.
        if (row.registers[lr].kind != RegisterRule::Kind::at_cfa || row.registers[lr].offset >= 0) return {};
    } else if (cfa.reg == sp && cfa.add < 0) {
        return {};  // it would return with more on the stack than it came with
    }
    for (std::uint8_t number = first_preserved; number <= last_preserved; ++number) {
        const Value same{.kind = Value::Kind::initial, .reg = number, .add = 0};
        if (registers[number] != same) row.registers[number] = rule_of(registers[number]);
    }
    return row;
}

// Of the code at hand.
class Code {
public:
    Code(const CodeReader& read, std::uint64_t address)
        : read_(read), middle_(address), thumb_((address & 2) != 0 || !looks_like_arm(address)) {}

    [[nodiscard]] std::optional<ArmEffect> effect_at(std::uint64_t at) const {
        const std::uint64_t place = at & ~std::uint64_t{3};
        const auto code = word(place);
        if (!code) return {};
        if (!thumb_) return arm_effect(*code);
        if ((at & 2) == 0) return thumb_effect(*code & 0xffff, *code >> 16);
        return thumb_effect(*code >> 16, word(place + 4).value_or(0) & 0xffff);
    }
    [[nodiscard]] std::uint64_t alignment() const { return thumb_ ? 2 : 4; }

private:
    // ARM instructions have a condition in their highest four bits: "always", nearly everywhere, and most are no branches
    // and no transfers of several registers, which are told by the bit below. In Thumb code that is a short branch, but
    // "always" with the bit is the half of many long instructions. What has other conditions has them in a row, and none
    // of what calls, begins and ends functions in Thumb code. In front may be another function, in the other state;
    // behind, constants.
    [[nodiscard]] bool looks_like_arm(std::uint64_t address) const {
        constexpr unsigned sure_behind = 9, sure_before = 10, likely = 10;
        const Conditions behind = conditions(address), before = conditions(address - 4 * words);
        if (behind.always_near >= sure_behind || before.always_near >= sure_before) return true;
        return (behind.repeat >= likely && !behind.like_thumb) || (before.repeat >= likely && !before.like_thumb);
    }

    static constexpr unsigned words = 16, near = 8;
    struct Conditions {
        unsigned always_near = 0;  // of the `near` words next to the address: 2 for each without the bit, 1 with it
        unsigned repeat = 0;       // words with "always" and without the bit, or with the condition of the one before
        bool like_thumb = false;
    };
    [[nodiscard]] Conditions conditions(std::uint64_t from) const {
        constexpr std::uint32_t always = 0xe, always_without = 0x1c;  // in the highest four, and five bits
        Conditions found;
        std::uint32_t last = ~std::uint32_t{0}, last_half = 0;
        for (unsigned i = 0; i < words; ++i) {
            const std::uint32_t code = word(from + 4 * i).value_or(0);
            if (code == 0) continue;  // between functions, or not there
            const bool is_near = from == middle_ ? i < near : i >= words - near;
            if (code >> 28 == always && is_near) found.always_near += code >> 27 == always_without ? 2 : 1;
            if (code >> 27 == always_without || code >> 28 == last) ++found.repeat;
            last = code >> 28;
            for (const std::uint32_t half : {code & 0xffff, code >> 16}) {
                // bx lr; push and pop with lr and pc; bl and blx
                found.like_thumb |= half == 0x4770 || half >> 8 == 0xb5 || half >> 8 == 0xbd;
                found.like_thumb |= last_half >> 11 == 0x1e && half >> 14 == 3;
                last_half = half;
            }
        }
        return found;
    }

    // At a multiple of 4. A look at the file costs much more than an instruction, so what lies around is read with it; next
    // to the end of what is there, only the word itself.
    [[nodiscard]] std::optional<std::uint32_t> word(std::uint64_t at) const {
        if (at - block_start_ >= block_size_) {
            block_start_ = at & ~std::uint64_t{block_.size() - 1};
            block_size_ = block_.size();
            if (!read_(block_start_, block_)) {
                block_start_ = at;
                block_size_ = 4;
                if (!read_(at, std::span(block_).first(4))) block_size_ = 0;
            }
            if (block_size_ == 0) return {};
        }
        const std::byte* bytes = block_.data() + static_cast<std::size_t>(at - block_start_);
        std::uint32_t value = 0;
        for (std::size_t i = 4; i-- > 0;) value = value << 8 | std::to_integer<std::uint32_t>(bytes[i]);
        return value;
    }

    const CodeReader& read_;
    std::uint64_t middle_;
    mutable std::array<std::byte, 256> block_;  // of it, `block_size_` bytes hold what is at `block_start_`
    mutable std::uint64_t block_start_ = 0;
    mutable std::size_t block_size_ = 0;
    bool thumb_;
};

// All ways from one address on, the one that does not jump first.
class Ways {
public:
    // `goal`: an address where a way ends.
    Ways(const Code& code, Way start, std::optional<std::uint64_t> goal = {})
        : code_(code), middle_(start.at), goal_(goal) {
        ways_.push_back(std::move(start));
    }

    enum class End : std::uint8_t { none, returns, may_have_returned, goal };
    // Whether lr was pushed on any way, as it was at the start: the function's frame was still to be made there.
    [[nodiscard]] bool pushed_link() const { return pushed_link_; }
    // The next way that came to an end that tells something, in `way`.
    End next(Way& way) {
        while (!ways_.empty()) {
            way = std::move(ways_.back());
            ways_.pop_back();
            if (const End end = follow(way); end != End::none) return end;
        }
        return End::none;
    }

private:
    [[nodiscard]] bool is_near(std::uint64_t at) const { return at - middle_ + furthest < 2 * furthest; }
    // Whether the address was not on any way yet.
    bool enter(std::uint64_t at) {
        const auto from = static_cast<std::size_t>(at - middle_ + furthest);
        const std::uint64_t bit = std::uint64_t{1} << (from / 2 % 64);
        std::uint64_t& word = seen_[from / 2 / 64];
        const bool first = (word & bit) == 0;
        word |= bit;
        return first;
    }

    End follow(Way& way) {
        while (left_-- > 0) {
            if (goal_ && way.at == *goal_) return End::goal;
            const auto effect = is_near(way.at) && enter(way.at) ? code_.effect_at(way.at) : std::nullopt;
            if (!effect) return End::none;
            const std::uint64_t target = way.at + static_cast<std::uint64_t>(effect->bytes);
            pushed_link_ |= effect->kind == Kind::push && (effect->mask >> lr & 1) != 0 &&
                            way.registers[lr].kind == Value::Kind::initial;
            const Fate fate = run(way, *effect);
            if (fate == Fate::ends) return End::none;
            if (fate == Fate::returns) return End::returns;
            if (fate == Fate::may_have_returned) return End::may_have_returned;
            way.at += effect->size;
            if (effect->kind == Kind::jump) {
                way.at = target;
                if (is_near(target)) continue;
                way.registers[pc] = way.registers[lr];
                return End::may_have_returned;
            }
            if (effect->kind == Kind::branch && effect->bytes != 0 && ways_.size() < most_ways) {
                ways_.push_back(way);
                ways_.back().at = target;
            }
        }
        return End::none;
    }

    const Code& code_;
    std::uint64_t middle_;
    std::optional<std::uint64_t> goal_;
    int left_ = most_instructions;
    bool pushed_link_ = false;
    std::vector<Way> ways_{};
    std::array<std::uint64_t, 2 * furthest / 2 / 64> seen_{};
};

// The first way that returns for certain tells; one that only may have returned, when there is no other.
std::optional<FrameRow> row_to_return(const Code& code, std::uint64_t address, bool return_address) {
    Ways ways(code, Way(address, return_address));
    Way way;
    std::optional<FrameRow> likely;
    for (;;) {
        const Ways::End end = ways.next(way);
        if (end == Ways::End::none) break;
        if (end == Ways::End::may_have_returned && likely) continue;
        const auto row = row_of(way, address);
        if (row && end == Ways::End::returns) return row;
        if (!likely) likely = row;
    }
    // It never returns, but has not begun yet.
    if (!likely && ways.pushed_link()) {
        likely.emplace();
        likely->start = address;
        likely->end = address + 1;
        likely->cfa_register = sp;
        likely->return_column = lr;
    }
    return likely;
}

// What a way from a function's first push says at `address`: there the stack pointer was `push` of the function's start.
std::optional<FrameRow> row_behind(const Way& way, std::uint64_t address) {
    FrameRow row;
    row.start = address;
    row.end = address + 1;
    row.return_column = lr;
    const auto from_start = [&](std::uint8_t number) {
        const Value& value = way.registers[number];
        return value.kind == Value::Kind::initial && value.reg == sp ? std::optional(value.add) : std::nullopt;
    };
    for (const std::uint8_t base : {sp, std::uint8_t{7}, std::uint8_t{11}}) {
        const auto distance = from_start(base);
        if (!distance) continue;
        row.cfa_register = base;
        row.cfa_offset = -*distance;
        for (const Store& store : way.stores) {
            const Value same{.kind = Value::Kind::initial, .reg = store.what.reg, .add = 0};
            const bool kept = store.what == same && store.what.reg >= first_preserved && store.what.reg != sp &&
                              store.where.reg == sp;
            if (kept) row.registers[store.what.reg] = {.kind = RegisterRule::Kind::at_cfa, .offset = store.where.add};
        }
        if (row.registers[lr].kind == RegisterRule::Kind::at_cfa) return row;
        return {};
    }
    return {};
}

// Functions that do not return, loops for ever among them, still keep lr as a rule: from the last push of it in front.
std::optional<FrameRow> row_from_start(const Code& code, std::uint64_t address) {
    constexpr std::uint64_t longest = 2048;
    for (std::uint64_t back = code.alignment(); back <= longest && back <= address; back += code.alignment()) {
        const auto effect = code.effect_at(address - back);
        if (!effect) return {};
        if (effect->kind != Kind::push || (effect->mask >> lr & 1) == 0) continue;
        Ways ways(code, Way(address - back, false), address);
        Way way;
        for (;;) {
            const Ways::End end = ways.next(way);
            if (end == Ways::End::goal) return row_behind(way, address);
            if (end == Ways::End::none) return {};
        }
    }
    return {};
}

}  // namespace

std::optional<FrameRow> row_by_arm_code(const CodeReader& read, std::uint64_t address, bool return_address) {
    const Code code(read, address);
    if (auto row = row_to_return(code, address, return_address)) return row;
    return row_from_start(code, address);
}

}  // namespace flamewire::unwind
