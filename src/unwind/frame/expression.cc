// The stack machine of DWARF expressions.
#include "unwind/frame/expression.h"

#include <algorithm>
#include <array>

namespace flamewire::unwind {

namespace {

enum Operation : std::uint8_t {
    op_addr = 0x03,
    op_deref = 0x06,
    op_const1u = 0x08,
    op_const1s = 0x09,
    op_const2u = 0x0a,
    op_const2s = 0x0b,
    op_const4u = 0x0c,
    op_const4s = 0x0d,
    op_const8u = 0x0e,
    op_const8s = 0x0f,
    op_constu = 0x10,
    op_consts = 0x11,
    op_dup = 0x12,
    op_drop = 0x13,
    op_over = 0x14,
    op_pick = 0x15,
    op_swap = 0x16,
    op_rot = 0x17,
    op_abs = 0x19,
    op_and = 0x1a,
    op_div = 0x1b,
    op_minus = 0x1c,
    op_mod = 0x1d,
    op_mul = 0x1e,
    op_neg = 0x1f,
    op_not = 0x20,
    op_or = 0x21,
    op_plus = 0x22,
    op_plus_uconst = 0x23,
    op_shl = 0x24,
    op_shr = 0x25,
    op_shra = 0x26,
    op_xor = 0x27,
    op_bra = 0x28,
    op_eq = 0x29,
    op_ge = 0x2a,
    op_gt = 0x2b,
    op_le = 0x2c,
    op_lt = 0x2d,
    op_ne = 0x2e,
    op_skip = 0x2f,
    op_lit0 = 0x30,
    op_lit31 = 0x4f,
    op_breg0 = 0x70,
    op_breg31 = 0x8f,
    op_bregx = 0x92,
    op_deref_size = 0x94,
    op_nop = 0x96,
};

constexpr std::size_t max_depth = 64;

class Machine {
public:
    Machine(Bytes code, const Registers& registers, const MemoryReader& read, std::uint64_t bias, bool big_endian)
        : code_(code),
          registers_(registers),
          read_(read),
          bias_(bias),
          word_size_(register_names(registers.arch()).word_size),
          big_endian_(big_endian) {}

    std::optional<std::uint64_t> run(std::optional<std::uint64_t> initial, std::uint32_t& operations_left) {
        if (initial) push(*initial);
        while (ok_ && position_ < code_.size()) {
            if (operations_left == 0) return std::nullopt;
            --operations_left;
            execute(static_cast<std::uint8_t>(fixed(1)));
        }
        if (!ok_ || depth_ == 0) return std::nullopt;
        return stack_[depth_ - 1];
    }

private:
    // Mask of an address-sized value.
    [[nodiscard]] std::uint64_t mask() const { return word_size_ == 8 ? ~std::uint64_t{0} : 0xffffffffu; }
    [[nodiscard]] std::int64_t as_signed(std::uint64_t value) const {
        return word_size_ == 8 ? static_cast<std::int64_t>(value) : static_cast<std::int32_t>(value);
    }

    void fail() { ok_ = false; }
    void push(std::uint64_t value) {
        if (depth_ == max_depth) return fail();
        stack_[depth_++] = value & mask();
    }
    void push_signed(std::int64_t value) { push(static_cast<std::uint64_t>(value)); }
    std::uint64_t pop() {
        if (depth_ == 0) {
            fail();
            return 0;
        }
        return stack_[--depth_];
    }
    // The value `down` entries below the top.
    std::uint64_t peek(std::size_t down) {
        if (down >= depth_) {
            fail();
            return 0;
        }
        return stack_[depth_ - 1 - down];
    }

    // Operands, read from the expression.
    std::uint64_t fixed(std::size_t size) {
        if (size > code_.size() - position_) {
            fail();
            return 0;
        }
        std::uint64_t value = 0;
        for (std::size_t i = 0; i < size; ++i) {
            const std::size_t shift = 8 * (big_endian_ ? size - 1 - i : i);
            value |= std::to_integer<std::uint64_t>(code_[position_ + i]) << shift;
        }
        position_ += size;
        return value;
    }
    std::size_t byte() { return static_cast<std::size_t>(fixed(1)); }
    std::int64_t fixed_signed(std::size_t size) {
        const std::size_t unused = 64 - 8 * size;
        return static_cast<std::int64_t>(fixed(size) << unused) >> unused;
    }
    std::uint64_t leb(bool is_signed) {
        std::uint64_t value = 0;
        unsigned shift = 0;
        std::uint64_t byte = 0;
        do {
            byte = fixed(1);
            if (shift < 64) value |= (byte & 0x7f) << shift;
            shift += 7;
        } while (ok_ && (byte & 0x80) != 0);
        if (is_signed && shift < 64 && (byte & 0x40) != 0) value |= ~std::uint64_t{0} << shift;
        return value;
    }

    void push_register(std::uint64_t number, std::uint64_t offset) {
        if (number >= max_registers) return fail();
        const auto index = static_cast<std::size_t>(number);
        if (!registers_.has(index)) return fail();
        push(registers_.get(index) + offset);
    }
    void load(std::size_t size) {
        const std::uint64_t address = pop();
        if (!ok_ || size == 0 || size > word_size_) return fail();
        const auto value = read_(address, static_cast<std::uint8_t>(size));
        if (!value) return fail();
        push(*value);
    }
    void jump() {
        const std::int64_t distance = fixed_signed(2);
        const std::int64_t target = static_cast<std::int64_t>(position_) + distance;
        if (target < 0 || target > static_cast<std::int64_t>(code_.size())) return fail();
        position_ = static_cast<std::size_t>(target);
    }

    void execute(std::uint8_t operation);
    void unary(std::uint8_t operation);
    void binary(std::uint8_t operation);
    [[nodiscard]] std::uint64_t shifted(std::uint8_t operation, std::uint64_t value, std::uint64_t by) const;

    Bytes code_;
    const Registers& registers_;
    const MemoryReader& read_;
    std::uint64_t bias_;
    std::uint8_t word_size_;
    bool big_endian_;
    std::size_t position_ = 0;
    std::array<std::uint64_t, max_depth> stack_{};
    std::size_t depth_ = 0;
    bool ok_ = true;
};

void Machine::execute(std::uint8_t operation) {
    if (operation >= op_lit0 && operation <= op_lit31) return push(operation - op_lit0);
    if (operation >= op_breg0 && operation <= op_breg31) return push_register(operation - op_breg0, leb(true));
    switch (operation) {
        case op_addr: return push(fixed(word_size_) + bias_);
        case op_deref: return load(word_size_);
        case op_deref_size: return load(byte());
        case op_const1u: return push(fixed(1));
        case op_const1s: return push_signed(fixed_signed(1));
        case op_const2u: return push(fixed(2));
        case op_const2s: return push_signed(fixed_signed(2));
        case op_const4u: return push(fixed(4));
        case op_const4s: return push_signed(fixed_signed(4));
        case op_const8u:
        case op_const8s: return push(fixed(8));
        case op_constu: return push(leb(false));
        case op_consts: return push(leb(true));
        case op_dup: return push(peek(0));
        case op_drop: return static_cast<void>(pop());
        case op_over: return push(peek(1));
        case op_pick: return push(peek(byte()));
        case op_swap: {
            const std::uint64_t top = pop(), second = pop();
            push(top);
            return push(second);
        }
        case op_rot: {
            const std::uint64_t top = pop(), second = pop(), third = pop();
            push(top);
            push(third);
            return push(second);
        }
        case op_abs:
        case op_neg:
        case op_not:
        case op_plus_uconst: return unary(operation);
        case op_bregx: {
            const std::uint64_t number = leb(false);
            return push_register(number, leb(true));
        }
        case op_skip: return jump();
        case op_bra: {
            if (pop() != 0) return jump();
            return static_cast<void>(fixed(2));
        }
        case op_nop: return;
        default: return binary(operation);
    }
}

void Machine::unary(std::uint8_t operation) {
    const std::uint64_t value = pop();
    switch (operation) {
        case op_abs: return push(as_signed(value) < 0 ? 0 - value : value);
        case op_neg: return push(0 - value);
        case op_not: return push(~value);
        default: return push(value + leb(false));
    }
}

std::uint64_t Machine::shifted(std::uint8_t operation, std::uint64_t value, std::uint64_t by) const {
    const unsigned bits = word_size_ == 8 ? 64 : 32;
    if (operation == op_shra) return static_cast<std::uint64_t>(as_signed(value) >> (by < bits ? by : bits - 1));
    if (by >= bits) return 0;
    return operation == op_shl ? value << by : value >> by;
}

void Machine::binary(std::uint8_t operation) {
    const std::uint64_t right = pop(), left = pop();
    const std::int64_t signed_right = as_signed(right), signed_left = as_signed(left);
    switch (operation) {
        case op_and: return push(left & right);
        case op_or: return push(left | right);
        case op_xor: return push(left ^ right);
        case op_plus: return push(left + right);
        case op_minus: return push(left - right);
        case op_mul: return push(left * right);
        case op_div:
            if (right == 0) return fail();
            // The only quotient that overflows wraps to itself.
            return signed_right == -1 ? push(0 - left) : push_signed(signed_left / signed_right);
        case op_mod:  // unsigned, as in the toolchains
            return right == 0 ? fail() : push(left % right);
        case op_shl:
        case op_shr:
        case op_shra: return push(shifted(operation, left, right));
        case op_eq: return push(left == right);
        case op_ne: return push(left != right);
        case op_ge: return push(signed_left >= signed_right);
        case op_gt: return push(signed_left > signed_right);
        case op_le: return push(signed_left <= signed_right);
        case op_lt: return push(signed_left < signed_right);
        default: return fail();
    }
}

}  // namespace

std::optional<std::uint64_t> evaluate(Bytes expression, const Registers& registers, const MemoryReader& read,
                                      std::optional<std::uint64_t> initial, std::uint64_t bias, bool big_endian,
                                      std::uint32_t* allowance) {
    const std::uint32_t given = allowance != nullptr ? std::min(*allowance, most_operations) : most_operations;
    std::uint32_t left = given;
    const auto value = Machine(expression, registers, read, bias, big_endian).run(initial, left);
    if (allowance != nullptr) *allowance -= given - left;
    return value;
}

}  // namespace flamewire::unwind
