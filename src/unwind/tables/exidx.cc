// Decodes .ARM.exidx and .ARM.extab: finds the entry, reads its instructions, runs them on a symbolic stack pointer.
#include "unwind/tables/exidx.h"

#include <array>
#include <bit>
#include <string>

#include "unwind/tables/arm_prologue.h"

namespace flamewire::unwind {
namespace {

constexpr std::uint8_t sp = 13, lr = 14, pc = 15;
constexpr std::uint32_t cannot_unwind = 1;
constexpr std::uint64_t entry_size = 8;
constexpr std::uint64_t address_space = std::uint64_t{1} << 32;
constexpr std::uint8_t op_deref = 0x06, op_consts = 0x11, op_plus = 0x22, op_breg0 = 0x70;

// A place-relative offset of 31 bits. Bit 30 is the sign; bit 31 has another meaning.
std::uint64_t prel31(std::uint64_t place, std::uint32_t word) {
    const std::uint32_t offset = (word & 0x7fffffffu) | (word & 0x40000000u) << 1;
    return static_cast<std::uint32_t>(static_cast<std::uint32_t>(place) + offset);
}

// A symbolic value: `reg` + inner, or, if indirect, the word stored there + outer.
struct Place {
    std::uint8_t reg = sp;
    bool indirect = false;
    std::int64_t inner = 0, outer = 0;

    void add(std::int64_t bytes) { (indirect ? outer : inner) += bytes; }
    [[nodiscard]] std::int64_t offset() const { return indirect ? outer : inner; }
    // Whether the two differ only by a constant.
    [[nodiscard]] bool same_base(const Place& other) const {
        return reg == other.reg && indirect == other.indirect && (!indirect || inner == other.inner);
    }
};

void append_signed(std::string& out, std::int64_t value) {
    for (;;) {
        const auto low = static_cast<std::uint8_t>(value & 0x7f);
        value >>= 7;
        const bool last = (value == 0 && (low & 0x40) == 0) || (value == -1 && (low & 0x40) != 0);
        out.push_back(static_cast<char>(last ? low : low | 0x80));
        if (last) return;
    }
}

ExpressionRange append_expression(std::string& out, const Place& place) {
    ExpressionRange range;
    range.begin = static_cast<std::uint32_t>(out.size());
    out.push_back(static_cast<char>(op_breg0 + place.reg));
    append_signed(out, place.inner);
    if (place.indirect) {
        out.push_back(static_cast<char>(op_deref));
        out.push_back(static_cast<char>(op_consts));
        append_signed(out, place.outer);
        out.push_back(static_cast<char>(op_plus));
    }
    range.size = static_cast<std::uint32_t>(out.size()) - range.begin;
    return range;
}

// The instruction bytes of one function in execution order: from the highest byte of each word down.
class Instructions {
public:
    // `left` bytes of `word` are instructions, in its highest bytes. `more` further words follow at `next`.
    Instructions(const WordReader& read, std::uint32_t word, std::uint32_t left, std::uint64_t next, std::uint32_t more)
        : read_(read), next_(next), word_(word), left_(left), more_(more) {}

    // nullopt at the end, or if a word is not in the file (then damaged()).
    std::optional<std::uint8_t> take() {
        if (left_ == 0) {
            if (more_ == 0) return {};
            const auto word = read_(next_);
            if (!word) {
                damaged_ = true;
                return {};
            }
            word_ = *word;
            next_ += 4;
            --more_;
            left_ = 4;
        }
        const auto byte = static_cast<std::uint8_t>(word_ >> 24);
        word_ <<= 8;
        --left_;
        return byte;
    }
    [[nodiscard]] bool damaged() const { return damaged_; }

private:
    const WordReader& read_;
    std::uint64_t next_;
    std::uint32_t word_, left_, more_;
    bool damaged_ = false;
};

// The virtual stack pointer, and the places of the registers popped so far.
class Machine {
public:
    enum class Step : std::uint8_t { go_on, finished, stopped };  // stopped: refuses to unwind, or damaged

    Step run(Instructions& code) {
        for (;;) {
            const auto opcode = code.take();
            if (!opcode) return code.damaged() ? Step::stopped : Step::finished;
            if (const Step step = execute(*opcode, code); step != Step::go_on) return step;
        }
    }

    // Fills in the row's rules. A register popped from another stack than the final one becomes an expression.
    void fill(FrameRow& row) const {
        if (vsp_.indirect) {
            row.cfa_is_expression = true;
            row.cfa_expression = append_expression(row.expressions, vsp_);
        } else {
            row.cfa_register = vsp_.reg;
            row.cfa_offset = vsp_.inner;
        }
        for (std::uint8_t number = 0; number < 16; ++number) {
            if (!popped(number)) continue;
            RegisterRule& rule = row.registers[number];
            if (places_[number].same_base(vsp_)) {
                rule.kind = RegisterRule::Kind::at_cfa;
                rule.offset = places_[number].offset() - vsp_.offset();
            } else {
                rule.kind = RegisterRule::Kind::at_expression;
                rule.expression = append_expression(row.expressions, places_[number]);
            }
        }
        row.return_column = popped(pc) ? pc : lr;
        row.signal_frame = popped(pc) && popped(sp);
    }

private:
    [[nodiscard]] bool popped(std::uint8_t number) const { return (popped_ >> number & 1) != 0; }

    Step pop(std::uint32_t mask) {
        if (sp_is_loaded_) return Step::stopped;
        for (std::uint8_t number = 0; number < 16; ++number) {
            if ((mask >> number & 1) == 0) continue;
            places_[number] = vsp_;
            popped_ |= std::uint32_t{1} << number;
            vsp_.add(4);
        }
        // The caller's stack pointer is the popped one. The row has a rule for sp, and its CFA is the end of the popped
        // words. Popping from the caller's stack after that is an error.
        sp_is_loaded_ = (mask >> sp & 1) != 0;
        return Step::go_on;
    }

    Step add(std::int64_t bytes) {
        if (sp_is_loaded_) return Step::stopped;
        vsp_.add(bytes);
        return Step::go_on;
    }

    Step set_vsp(std::uint8_t number) {
        if (sp_is_loaded_) return Step::stopped;
        if (!popped(number)) {
            vsp_ = Place{.reg = number};
            return Step::go_on;
        }
        // The register has been popped, so the new stack pointer is in memory. Compilers never do this twice.
        const Place& stored = places_[number];
        if (stored.indirect) return Step::stopped;
        vsp_ = Place{.reg = stored.reg, .indirect = true, .inner = stored.inner};
        return Step::go_on;
    }

    Step add_large(Instructions& code) {  // 0xb2 ULEB128
        std::uint64_t value = 0;
        for (unsigned shift = 0; shift < 35; shift += 7) {
            const auto byte = code.take();
            if (!byte) return Step::stopped;
            value |= std::uint64_t{*byte & 0x7fu} << shift;
            if ((*byte & 0x80) == 0) return add(static_cast<std::int64_t>(0x204 + (value << 2)));
        }
        return Step::stopped;
    }

    // Opcodes with a second byte.
    Step execute_long(std::uint8_t opcode, Instructions& code) {
        const auto second = code.take();
        if (!second) return Step::stopped;
        const std::int64_t doubles = (*second & 0x0f) + 1;
        switch (opcode) {
            case 0xb1:  // r0 to r3 by mask
                return *second == 0 || *second > 0x0f ? Step::stopped : pop(*second);
            case 0xb3: return add(8 * doubles + 4);  // D registers as saved by FSTMFDX
            case 0xc6:                               // WMMX data registers
            case 0xc8:                               // D16 and up, as saved by VPUSH
            case 0xc9: return add(8 * doubles);      // D0 and up, as saved by VPUSH
            case 0xc7:                               // WMMX control registers by mask
                return *second == 0 || *second > 0x0f ? Step::stopped : add(4 * std::popcount(*second));
            default: break;
        }
        const std::uint32_t mask = (std::uint32_t{opcode & 0x0fu} << 8 | *second) << 4;  // 0x80 to 0x8f: r4 to r15
        return mask == 0 ? Step::stopped : pop(mask);
    }

    Step execute(std::uint8_t opcode, Instructions& code) {
        const unsigned low3 = opcode & 7u, low6 = opcode & 0x3fu;
        if (opcode < 0x40) return add(std::int64_t{low6} * 4 + 4);
        if (opcode < 0x80) return add(-(std::int64_t{low6} * 4 + 4));
        if (opcode < 0x90) return execute_long(opcode, code);
        if (opcode < 0xa0) return opcode == 0x9d || opcode == 0x9f ? Step::stopped : set_vsp(opcode & 0x0f);
        if (opcode < 0xb0) {  // r4 to r4+n, with lr or without
            const std::uint32_t mask = ((2u << low3) - 1) << 4;
            return pop((opcode & 8) != 0 ? mask | 1u << lr : mask);
        }
        if (opcode == 0xb0) return Step::finished;
        if (opcode == 0xb2) return add_large(code);
        if (opcode == 0xb4) return add(4);                                    // return address authentication code
        if (opcode == 0xb5) return Step::go_on;                               // vsp is the modifier for that code
        if (opcode >= 0xb8 && opcode < 0xc0) return add(8 * (low3 + 1) + 4);  // D8 to D8+n, FSTMFDX
        if (opcode >= 0xc0 && opcode < 0xc6) return add(8 * (low3 + 1));      // WMMX WR10 to WR10+n
        if (opcode >= 0xd0 && opcode < 0xd8) return add(8 * (low3 + 1));      // D8 to D8+n, VPUSH
        if (opcode == 0xb1 || opcode == 0xb3 || (opcode >= 0xc6 && opcode < 0xca)) return execute_long(opcode, code);
        return Step::stopped;  // spare
    }

    Place vsp_;
    std::array<Place, 16> places_{};
    std::uint32_t popped_ = 0;
    bool sp_is_loaded_ = false;
};

// The instructions of an entry. nullopt if it is damaged.
std::optional<Instructions> instructions_at(const WordReader& read, std::uint64_t place, std::uint32_t content) {
    std::uint64_t address = 0;  // of the word after `word`
    std::uint32_t word = content;
    const bool is_inline = (content & 0x80000000u) != 0;
    if (!is_inline) {
        address = prel31(place, content);
        const auto first = read(address);
        if (!first) return {};
        word = *first;
        address += 4;
    }
    if ((word & 0x80000000u) == 0) {
        // A language-specific personality routine, which defines the format. All existing ones use GNU's: a byte with
        // the number of words that follow, then instructions.
        const auto data = read(address);
        if (!data) return {};
        return Instructions(read, *data << 8, 3, address + 4, *data >> 24);
    }
    const std::uint32_t model = word >> 24 & 0x7f;
    if (model == 0) return Instructions(read, word << 8, 3, address, 0);
    const std::uint32_t more = word >> 16 & 0xff;
    if (model > 2 || (is_inline && more != 0)) return {};
    return Instructions(read, word << 16, 2, address, more);
}

// The table's last entry whose function starts at or before `address`. nullopt if there is none.
struct Entry {
    std::uint64_t place = 0, start = 0, end = 0;  // `place`: address of the entry
};
std::optional<Entry> find_entry(const WordReader& read, std::uint64_t table, std::uint64_t size,
                                std::uint64_t address) {
    const auto start_of = [&](std::uint64_t index) -> std::optional<std::uint64_t> {
        const auto word = read(table + index * entry_size);
        if (!word) return {};
        return prel31(table + index * entry_size, *word);
    };
    std::uint64_t low = 0, high = size / entry_size;  // below low: starts <= address; from high on: > address
    Entry entry{.place = 0, .start = 0, .end = address_space};
    while (low < high) {
        const std::uint64_t middle = low + (high - low) / 2;
        const auto start = start_of(middle);
        if (!start) return {};
        if (*start <= address) {
            low = middle + 1;
            entry.place = table + middle * entry_size;
            entry.start = *start;
        } else {
            high = middle;
            entry.end = *start;
        }
    }
    if (low == 0) return {};
    return entry;
}

}  // namespace

std::optional<FrameRow> exidx_row(const WordReader& read, std::uint64_t table, std::uint64_t size,
                                  std::uint64_t address) {
    if (address >= address_space) return {};
    const auto entry = find_entry(read, table, size, address);
    if (!entry) return {};
    const auto content = read(entry->place + 4);
    if (!content) return {};

    if (*content == cannot_unwind) return {};
    FrameRow row;
    row.start = entry->start;
    row.end = entry->end;
    row.cfa_register = sp;
    row.return_column = lr;
    if (address == entry->start) {
        row.end = entry->start + 1;
        return row;
    }
    row.start = entry->start + 1;
    auto code = instructions_at(read, entry->place + 4, *content);
    if (!code) return {};
    Machine machine;
    if (machine.run(*code) != Machine::Step::finished) return {};
    machine.fill(row);
    // A return address - 1 is odd in both states. An interrupted instruction can be in the prologue or the epilogue.
    if ((address & 1) == 0) refine_at_edges(read, entry->start, address, row);
    return row;
}

}  // namespace flamewire::unwind
