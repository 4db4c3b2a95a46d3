// Evaluates a row register by register.
#include "unwind/frame/caller_by_row.h"

namespace flamewire::unwind {

namespace {

class Evaluation {
public:
    Evaluation(const FrameRow& row, const Registers& registers, const MemoryReader& read, std::uint64_t bias,
               bool big_endian, std::uint32_t& allowance)
        : row_(row),
          registers_(registers),
          read_(read),
          bias_(bias),
          big_endian_(big_endian),
          allowance_(allowance),
          names_(register_names(registers.arch())),
          mask_(names_.word_size == 8 ? ~std::uint64_t{0} : 0xffffffffu) {}

    std::optional<Registers> caller() {
        if (!find_cfa()) return std::nullopt;
        Registers caller = registers_;
        for (std::uint8_t number = 0; number < names_.count; ++number)
            if (number != names_.pc) set(caller, number, value_of(number));
        // The CFA is by definition the caller's sp.
        if (row_.registers[names_.sp].kind == RegisterRule::Kind::same) caller.set(names_.sp, cfa_);
        const auto pc = row_.return_column < max_registers ? value_of(row_.return_column) : std::nullopt;
        if (!pc) return std::nullopt;
        caller.set(names_.pc, *pc & mask_);
        return caller;
    }

private:
    static void set(Registers& caller, std::uint8_t number, std::optional<std::uint64_t> value) {
        if (value) {
            caller.set(number, *value);
        } else {
            caller.forget(number);
        }
    }

    bool find_cfa() {
        if (row_.cfa_is_expression) {
            const auto value = evaluate_range(row_.cfa_expression, std::nullopt);
            if (!value) return false;
            cfa_ = *value;
            return true;
        }
        if (!registers_.has(row_.cfa_register)) return false;
        cfa_ = plus(registers_.get(row_.cfa_register), row_.cfa_offset);
        return true;
    }

    std::optional<std::uint64_t> value_of(std::uint8_t number) const {
        const RegisterRule& rule = row_.registers[number];
        switch (rule.kind) {
            case RegisterRule::Kind::same: return held(number);
            case RegisterRule::Kind::undefined: return std::nullopt;
            case RegisterRule::Kind::at_cfa: return saved(number, plus(cfa_, rule.offset));
            case RegisterRule::Kind::cfa_plus: return plus(cfa_, rule.offset);
            case RegisterRule::Kind::in_register: return held(rule.reg);
            case RegisterRule::Kind::is_expression: return evaluate_range(rule.expression, cfa_);
            case RegisterRule::Kind::at_expression: {
                const auto address = evaluate_range(rule.expression, cfa_);
                return address ? read_(*address, names_.word_size) : std::nullopt;
            }
        }
        return std::nullopt;
    }

    // Data below the stack pointer is not preserved: a register saved there was already restored.
    [[nodiscard]] std::optional<std::uint64_t> saved(std::uint8_t number, std::uint64_t address) const {
        const auto value = read_(address, names_.word_size);
        return value || number == names_.pc || address >= registers_.get(names_.sp) ? value : held(number);
    }
    [[nodiscard]] std::optional<std::uint64_t> held(std::uint8_t number) const {
        return registers_.has(number) ? std::optional(registers_.get(number)) : std::nullopt;
    }
    [[nodiscard]] std::uint64_t plus(std::uint64_t value, std::int64_t offset) const {
        return (value + static_cast<std::uint64_t>(offset)) & mask_;
    }
    [[nodiscard]] std::optional<std::uint64_t> evaluate_range(const ExpressionRange& range,
                                                              std::optional<std::uint64_t> initial) const {
        const Bytes all = as_bytes_view(row_.expressions);
        if (range.begin > all.size() || range.size > all.size() - range.begin) return std::nullopt;
        return evaluate(all.subspan(range.begin, range.size), registers_, read_, initial, bias_, big_endian_,
                        &allowance_);
    }

    const FrameRow& row_;
    const Registers& registers_;
    const MemoryReader& read_;
    std::uint64_t bias_;
    bool big_endian_;
    std::uint32_t& allowance_;
    const RegisterNames& names_;
    std::uint64_t mask_;
    std::uint64_t cfa_ = 0;
};

}  // namespace

std::optional<Registers> caller_by_row(const FrameRow& row, const Registers& registers, const MemoryReader& read,
                                       std::uint64_t bias, bool big_endian, std::uint32_t& allowance) {
    return Evaluation(row, registers, read, bias, big_endian, allowance).caller();
}

}  // namespace flamewire::unwind
