#include "unwind/tables/call_frame.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/byte_reader.h"

namespace flamewire::unwind {
namespace {

// DW_CFA_*: DWARF 5, section 7.24. Vendor extensions: the ABIs of their architectures and the LSB.
enum Instruction : std::uint8_t {
    nop = 0x00,
    set_loc = 0x01,
    advance_loc1 = 0x02,
    advance_loc2 = 0x03,
    advance_loc4 = 0x04,
    offset_extended = 0x05,
    restore_extended = 0x06,
    undefined = 0x07,
    same_value = 0x08,
    in_other_register = 0x09,
    remember_state = 0x0a,
    restore_state = 0x0b,
    def_cfa = 0x0c,
    def_cfa_register = 0x0d,
    def_cfa_offset = 0x0e,
    def_cfa_expression = 0x0f,
    expression = 0x10,
    offset_extended_sf = 0x11,
    def_cfa_sf = 0x12,
    def_cfa_offset_sf = 0x13,
    val_offset = 0x14,
    val_offset_sf = 0x15,
    val_expression = 0x16,
    mips_advance_loc8 = 0x1d,
    aarch64_negate_ra_state_with_pc = 0x2c,
    aarch64_negate_ra_state = 0x2d,  // SPARC's GNU_window_save
    gnu_args_size = 0x2e,
    gnu_negative_offset_extended = 0x2f,
};
// If the upper two bits are not zero, they are the instruction, and the lower six its first operand.
constexpr std::uint8_t advance_loc = 0x40, offset = 0x80, restore = 0xc0, operand_mask = 0x3f;

constexpr std::size_t max_remembered = 64;
// Copying a row costs as much as this many other instructions.
constexpr std::uint64_t work_of_copy = 32;
using Kind = RegisterRule::Kind;

class Interpreter {
public:
    Interpreter(const CommonEntry& common, const FrameDescription& description, std::uint64_t address, Arch arch,
                bool big_endian, TableWork& work, FrameRow& row)
        : common_(common),
          description_(description),
          address_(address),
          arch_(arch),
          big_endian_(big_endian),
          work_(work),
          row_(row) {
        row_.start = description.start;
        row_.end = description.end;
        row_.return_column = common.return_column;
        row_.signal_frame = common.signal_frame;
    }

    bool run() {
        if (!run_instructions(common_.instructions)) return false;
        initial_ = row_.registers;
        return run_instructions(description_.instructions) && cfa_defined_;
    }

private:
    // Returns true at the end of the bytes, or when the next row starts after the address.
    bool run_instructions(Bytes instructions) {
        ByteReader in(instructions, byte_order(big_endian_));
        while (!in.at_end() && !done_) {
            work_.add(1);
            if (work_.spent()) return false;
            const std::uint8_t code = in.u8();
            const std::uint8_t operand = code & operand_mask;
            bool good = true;
            switch (code & ~operand_mask) {
                case advance_loc: good = advance(operand); break;
                case offset: store(operand, in.uleb()); break;
                case restore: good = restore_register(operand); break;
                default: good = extended(code, in); break;
            }
            if (!good || !in.ok()) return false;
        }
        return true;
    }

    bool extended(std::uint8_t code, ByteReader& in) {
        switch (code) {
            case nop: return true;
            case set_loc: return set_location(in);
            case advance_loc1: return advance(in.number(1));
            case advance_loc2: return advance(in.number(2));
            case advance_loc4: return advance(in.number(4));
            case mips_advance_loc8: return advance(in.number(8));
            case restore_extended: return restore_register(in.uleb());
            case remember_state: return remember();
            case restore_state: return recall();
            case gnu_args_size: in.uleb(); return true;  // only matters for landing pads
            case aarch64_negate_ra_state:
            case aarch64_negate_ra_state_with_pc:
                row_.return_signed = !row_.return_signed;
                return arch_ == Arch::aarch64;
            case def_cfa:
            case def_cfa_sf:
            case def_cfa_register:
            case def_cfa_offset:
            case def_cfa_offset_sf:
            case def_cfa_expression: return define_cfa(code, in);
            default: return define_register(code, in);
        }
    }

    bool define_cfa(std::uint8_t code, ByteReader& in) {
        if (code == def_cfa_expression) {
            row_.cfa_is_expression = true;
            row_.cfa_expression = keep_expression(in);
            cfa_defined_ = true;
            return true;
        }
        if (code == def_cfa || code == def_cfa_sf || code == def_cfa_register) {
            const std::uint64_t number = in.uleb();
            if (number >= no_register) return false;
            row_.cfa_is_expression = false;
            row_.cfa_register = static_cast<std::uint8_t>(number);
            cfa_defined_ = true;
        }
        if (code == def_cfa || code == def_cfa_offset) row_.cfa_offset = static_cast<std::int64_t>(in.uleb());
        if (code == def_cfa_sf || code == def_cfa_offset_sf)
            row_.cfa_offset = factored(static_cast<std::uint64_t>(in.sleb()));
        return true;
    }

    bool define_register(std::uint8_t code, ByteReader& in) {
        const std::uint64_t number = in.uleb();
        switch (code) {
            case undefined: set(number, {.kind = Kind::undefined}); return true;
            case same_value: set(number, {.kind = Kind::same}); return true;
            case in_other_register: {
                const std::uint64_t other = in.uleb();
                if (other < no_register)
                    set(number, {.kind = Kind::in_register, .reg = static_cast<std::uint8_t>(other)});
                else
                    set(number, {.kind = Kind::undefined});
                return true;
            }
            case offset_extended: store(number, in.uleb()); return true;
            case offset_extended_sf: store(number, static_cast<std::uint64_t>(in.sleb())); return true;
            case gnu_negative_offset_extended: store(number, -in.uleb()); return true;
            case val_offset: set(number, {.kind = Kind::cfa_plus, .offset = factored(in.uleb())}); return true;
            case val_offset_sf:
                set(number, {.kind = Kind::cfa_plus, .offset = factored(static_cast<std::uint64_t>(in.sleb()))});
                return true;
            case expression: set(number, {.kind = Kind::at_expression, .expression = keep_expression(in)}); return true;
            case val_expression:
                set(number, {.kind = Kind::is_expression, .expression = keep_expression(in)});
                return true;
            default: return false;
        }
    }

    // Floating-point and vector registers have higher numbers than those that a walk tracks.
    void set(std::uint64_t number, const RegisterRule& rule) {
        if (number < max_registers) row_.registers[static_cast<std::size_t>(number)] = rule;
    }
    void store(std::uint64_t number, std::uint64_t factor) {
        set(number, {.kind = Kind::at_cfa, .offset = factored(factor)});
    }

    [[nodiscard]] std::int64_t factored(std::uint64_t factor) const {
        return static_cast<std::int64_t>(factor * static_cast<std::uint64_t>(common_.data_alignment));
    }

    ExpressionRange keep_expression(ByteReader& in) {
        const Bytes bytes = in.bytes(in.uleb());
        const ExpressionRange range{.begin = static_cast<std::uint32_t>(row_.expressions.size()),
                                    .size = static_cast<std::uint32_t>(bytes.size())};
        row_.expressions += as_text(bytes);
        return range;
    }

    bool restore_register(std::uint64_t number) {
        if (!initial_) return false;
        if (number < max_registers) set(number, (*initial_)[static_cast<std::size_t>(number)]);
        return true;
    }

    // Expression bytes are only ever appended, so a remembered row needs no copy of them.
    bool remember() {
        if (remembered_.size() == max_remembered) return false;
        work_.add(work_of_copy);
        std::string expressions = std::move(row_.expressions);
        row_.expressions.clear();
        remembered_.push_back(row_);
        row_.expressions = std::move(expressions);
        return true;
    }
    bool recall() {
        if (remembered_.empty()) return false;
        work_.add(work_of_copy);
        FrameRow& row = remembered_.back();
        row.start = row_.start;
        row.expressions = std::move(row_.expressions);
        row_ = std::move(row);
        remembered_.pop_back();
        return true;
    }

    bool advance(std::uint64_t delta) {
        std::uint64_t bytes = 0, location = 0;
        return !__builtin_mul_overflow(delta, common_.code_alignment, &bytes) &&
               !__builtin_add_overflow(row_.start, bytes, &location) && move_to(location);
    }
    bool set_location(ByteReader& in) {
        // `instructions_address` is only valid for a position in the FDE's own instructions.
        PointerBases bases = common_.bases;
        bases.function = description_.start;
        const auto location = read_encoded_pointer(
            in, common_.fde_encoding, description_.instructions_address + in.position(), bases, common_.address_size);
        return location && *location >= row_.start && move_to(*location);
    }
    bool move_to(std::uint64_t location) {
        if (!initial_) return false;  // a CIE must not change the location
        if (location > address_) {
            row_.end = std::min(location, description_.end);
            done_ = true;
        } else {
            row_.start = location;
        }
        return true;
    }

    const CommonEntry& common_;
    const FrameDescription& description_;
    std::uint64_t address_;
    Arch arch_;
    bool big_endian_;
    TableWork& work_;
    FrameRow& row_;                                                   // row_.start is the current location
    std::optional<std::array<RegisterRule, max_registers>> initial_;  // state after the CIE's instructions
    std::vector<FrameRow> remembered_;
    bool cfa_defined_ = false, done_ = false;
};

}  // namespace

std::optional<FrameRow> run_call_frame(const CommonEntry& common, const FrameDescription& description,
                                       std::uint64_t address, Arch arch, bool big_endian, TableWork& work) {
    std::optional<FrameRow> row;
    if (address < description.start || address >= description.end || common.return_column >= max_registers) return row;
    if (!Interpreter(common, description, address, arch, big_endian, work, row.emplace()).run()) row.reset();
    return row;
}

}  // namespace flamewire::unwind
