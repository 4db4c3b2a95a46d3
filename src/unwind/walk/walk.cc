// Steps from frame to frame. leave_frame(), by_compact_rule() and push() run for nearly every frame: they do not
// allocate, call through pointers, or copy registers.
#include "unwind/walk/walk.h"

#include <bit>

#include "unwind/frame/caller_by_row.h"

namespace flamewire::unwind {

namespace {

// Stacks grow in one direction, but a thread can switch stacks (alternate signal stacks, coroutines). More switches
// than this are damage that leads in circles.
constexpr unsigned most_steps_inwards = 16;

}  // namespace

std::uint64_t code_mask_of(Arch arch, const UnwinderOptions& options) {
    switch (arch) {
        case Arch::x86_64: return ~std::uint64_t{0};
        case Arch::x86: return 0xffffffffu;
        case Arch::aarch64:
            return options.aarch64_address_bits >= 64 ? ~std::uint64_t{0}
                                                      : (std::uint64_t{1} << options.aarch64_address_bits) - 1;
        case Arch::arm: return 0xfffffffeu;  // bit 0 is the Thumb bit
    }
    return ~std::uint64_t{0};
}

Walk::Walk(Means means, const Registers& start, const StackCopy& stack, CodeMap& map, std::size_t max_depth,
           std::vector<Frame>& frames)
    : means_(means),
      arch_(arch_info(start.arch())),
      map_(map),
      pieces_(map),
      max_depth_(max_depth),
      frames_(frames),
      stack_(stack, arch_.names.word_size, means.options.big_endian),
      address_mask_(arch_.names.word_size == 8 ? ~std::uint64_t{0} : 0xffffffffu),
      code_mask_(code_mask_of(start.arch(), means.options)),
      registers_(start),
      stack_reader_([this](std::uint64_t address, std::uint8_t size) { return read_stack(address, size); }),
      memory_reader_([this](std::uint64_t address, std::uint8_t size) { return read_memory(address, size); }) {
    for (std::size_t position = 0; position < arch_.preserved_count; ++position) {
        preserved_mask_ |= std::uint64_t{1} << arch_.preserved[position];
        if (arch_.preserved[position] == arch_.names.frame_pointer) fp_position_ = position;
    }
    preserved_mask_ |= std::uint64_t{1} << arch_.names.sp | std::uint64_t{1} << arch_.names.pc;
}

StopReason Walk::run() {
    frames_.clear();
    pc_ = registers_.get(arch_.names.pc) & code_mask_;
    sp_ = registers_.get(arch_.names.sp);
    registers_.set(arch_.names.pc, pc_);
    Stop stop = push(FoundBy::registers, sp_);
    while (!stop) stop = leave_frame();
    if (*stop != StopReason::root && !frames_.empty() && in_entry()) return StopReason::root;
    return *stop;
}

Walk::Stop Walk::leave_frame() {
    const std::uint64_t address = code_address().lookup();
    const CodePiece* piece = pieces_.at(address);
    if (piece == nullptr) return without_map();
    const RuleKey key(piece->module, address - piece->bias, return_address_);
    if (piece->module == 0) return in_code_without_file(*piece);
    const Rule& rule = means_.rules.rule(key, registers_.arch());
    switch (rule.kind) {
        case Rule::Kind::compact: return by_compact_rule(rule, FoundBy::rule);
        case Rule::Kind::inferred: return by_inferred_rule(rule);
        case Rule::Kind::row:
        case Rule::Kind::inferred_row: return by_row(rule, key);
        case Rule::Kind::signal_return: return by_signal_return();
        case Rule::Kind::none: return without_rule();
        case Rule::Kind::root: break;
    }
    return StopReason::root;
}

Walk::Stop Walk::by_compact_rule(const Rule& rule, FoundBy how) {
    const RegisterNames& names = arch_.names;
    const std::uint64_t fp = registers_.get(names.frame_pointer);
    std::uint64_t cfa = 0;
    if (registers_.has(rule.cfa_register)) {
        cfa = (registers_.get(rule.cfa_register) + static_cast<std::uint64_t>(std::int64_t{rule.cfa_offset})) &
              address_mask_;
    }
    const auto at = [&](std::int16_t words) {
        return (cfa + static_cast<std::uint64_t>(std::int64_t{words} * names.word_size)) & address_mask_;
    };
    if (!registers_.has(rule.cfa_register)) {
        // If this frame was found by the frame pointer alone, sp is unknown, but the record's place is known.
        if (!rule.frame_pointer_safe || !registers_.has(names.frame_pointer))
            return lost_by_cut_ ? StopReason::truncated_copy : StopReason::no_info;
        cfa = 0 - static_cast<std::uint64_t>(std::int64_t{rule.saved_at[fp_position_]} * names.word_size);
        cfa = (fp + cfa) & address_mask_;
    }
    if (rule.frame_pointer_safe) {
        frames_.back().frame_pointer_safe =
            rule.cfa_register == names.frame_pointer || at(rule.saved_at[fp_position_]) == fp;
    }
    frames_.back().skips_caller = rule.skips_caller;
    if (frames_.size() >= max_depth_) return StopReason::max_depth;

    std::uint64_t pc = 0, pc_at = 0;
    if (rule.return_in_link) {
        // A caller's own call has overwritten its link register. Only an interrupted frame may still return through it.
        if (!registers_.has(names.link)) return StopReason::no_info;
        pc = registers_.get(names.link);
    } else {
        pc_at = at(rule.return_at);
        if (!stack_.load_word(pc_at, pc)) {
            unread_pc_at_ = pc_at;
            return rule.other_stack ? StopReason::other_stack : stack_.reason_for(pc_at);
        }
    }
    for (unsigned left = rule.saved; left != 0; left &= left - 1) {
        const auto position = static_cast<std::size_t>(std::countr_zero(left));
        std::uint64_t value = 0;
        if (stack_.load_word(at(rule.saved_at[position]), value)) {
            registers_.set(arch_.preserved[position], value);
        } else if (!saved_below_sp(rule, position, names)) {
            registers_.forget(arch_.preserved[position]);
            lost_by_cut_ |= stack_.reason_for(at(rule.saved_at[position])) == StopReason::truncated_copy;
        }
    }
    for (unsigned left = rule.lost; left != 0; left &= left - 1)
        registers_.forget(arch_.preserved[static_cast<std::size_t>(std::countr_zero(left))]);
    registers_.keep(preserved_mask_);
    registers_.set(names.sp, cfa);
    registers_.set(names.pc, pc);
    return_address_ = true;
    const bool skips_caller = rule.other_stack && rule.skips_caller;
    const Stop stop = push(how, cfa);
    if (stop) return stop;
    frames_.back().pc_at = pc_at;
    if (skips_caller) frames_[frames_.size() - 2].caller_missing = true;
    return stop;
}

Walk::Stop Walk::by_inferred_rule(const Rule& rule) {
    const Rule copy = rule;  // checking the caller may compile other rules
    failed_read_.reset();
    const std::optional<std::uint64_t> pc = return_address_by(rule);
    const bool cut = lost_by_cut_ || (failed_read_ && stack_.reason_for(*failed_read_) == StopReason::truncated_copy);
    if (pc && !can_return_to(*pc)) return without_rule();
    if (!pc && !cut) {
        const Stop stop = without_rule();
        if (stop != StopReason::no_info) return stop;  // otherwise by_compact_rule() reports what could not be read
    }
    return by_compact_rule(copy, FoundBy::code);
}

// The return address according to a compact rule.
std::optional<std::uint64_t> Walk::return_address_by(const Rule& rule) {
    const std::uint8_t link = arch_.names.link;
    if (rule.return_in_link) return registers_.has(link) ? std::optional(registers_.get(link)) : std::nullopt;
    if (!registers_.has(rule.cfa_register)) return std::nullopt;
    const std::int64_t offset = std::int64_t{rule.cfa_offset} + rule.return_at * arch_.names.word_size;
    const std::uint64_t pc_at =
        (registers_.get(rule.cfa_register) + static_cast<std::uint64_t>(offset)) & address_mask_;
    return read_stack(pc_at, arch_.names.word_size);
}

// Whether a call ends there, or a signal handler returns there. `pc` is as stored in memory (ARM: with the Thumb bit).
bool Walk::can_return_to(std::uint64_t pc) {
    const std::uint64_t address = (pc & code_mask_) - 1;
    const CodePiece* piece = pieces_.at(address);
    if (piece == nullptr || piece->module == 0) return false;
    return means_.rules.may_return_to(RuleKey(piece->module, address - piece->bias, true), registers_.arch(), pc);
}

// Adds the frame in `registers_`.
Walk::Stop Walk::push(FoundBy how, std::uint64_t cfa) {
    const std::uint64_t pc = registers_.get(arch_.names.pc) & code_mask_;
    // The end of a chain without tables. An interrupted pc of 0, in contrast, was a jump there.
    if (pc == 0 && return_address_) return StopReason::no_map;
    if (!frames_.empty() && cfa <= sp_) {
        if ((cfa == sp_ && pc == pc_) || ++steps_inwards_ > most_steps_inwards) return StopReason::not_advancing;
    }
    pc_ = pc;
    sp_ = cfa;
    frames_.push_back({.pc = pc,
                       .sp = cfa,
                       .fp = registers_.get(arch_.names.frame_pointer),
                       .found_by = how,
                       .return_address = return_address_,
                       .frame_pointer_safe = false,
                       .pc_at = 0});
    ++means_.counts.found[static_cast<std::size_t>(how)];
    return std::nullopt;
}

Walk::Stop Walk::go_on(const Registers& caller, FoundBy how, bool return_address) {
    registers_ = caller;
    return_address_ = return_address;
    // With the frame pointer alone, sp may be unknown. The frame is then assumed to be further out than its callee.
    const bool has_sp = caller.has(arch_.names.sp);
    const std::uint64_t before = sp_;
    Stop stop = push(how, has_sp ? caller.sp() : sp_ + 1);
    if (!stop && !has_sp) {
        frames_.back().sp = 0;
        sp_ = before;
    }
    return stop;
}

Walk::Stop Walk::by_row(const Rule& rule, const RuleKey& key) {
    const bool is_inferred = rule.kind == Rule::Kind::inferred_row;
    const FrameRow* row = means_.rules.row(rule, key, registers_.arch());
    if (row == nullptr) return without_rule();
    if (frames_.size() >= max_depth_) return StopReason::max_depth;
    failed_read_.reset();
    const std::uint64_t bias = code_address().lookup() - key.address;
    const std::optional<Registers> caller =
        caller_by_row(*row, registers_, memory_reader_, bias, means_.options.big_endian, operations_left_);
    if (!caller) {
        Stop stop;
        if (failed_read_ && stack_.reason_for(*failed_read_) == StopReason::truncated_copy)
            return StopReason::truncated_copy;
        if (is_inferred) return without_rule();
        if (by_libunwind(stop)) return stop;
        return failed_read_ ? StopReason::bad_read : StopReason::no_info;
    }
    Registers known = *caller;
    if (is_inferred) {
        known.keep(preserved_mask_);
        return can_return_to(known.get(arch_.names.pc)) ? go_on(known, FoundBy::code, true) : without_rule();
    }
    if (!row->signal_frame) known.keep(preserved_mask_);
    return go_on(known, row->expressions.empty() ? FoundBy::rule : FoundBy::expression, !row->signal_frame);
}

Walk::Stop Walk::in_code_without_file(const CodePiece& piece) {
    const std::optional<Rule> found = map_.rule_at(piece, registers_.arch(), code_address());
    if (!found) return without_rule();
    // The bytes can match by chance, so the return address must be in known code.
    const std::optional<std::uint64_t> pc = return_address_by(*found);
    if (pc && pieces_.at((*pc & code_mask_) - 1) == nullptr) return without_rule();
    return by_compact_rule(*found, FoundBy::code);
}

Walk::Stop Walk::by_signal_return() {
    const CodePiece* piece = pieces_.at(code_address().lookup());
    ModuleTables* tables = piece != nullptr ? means_.rules.modules().open(piece->module) : nullptr;
    if (tables == nullptr) return StopReason::no_info;
    if (frames_.size() >= max_depth_) return StopReason::max_depth;
    std::array<std::byte, 16> code{};
    std::size_t size = code.size();
    while (size > 0 && !tables->read(pc_ - piece->bias, std::span(code).first(size))) --size;
    failed_read_.reset();
    const auto interrupted = arch_.by_signal_frame(registers_, std::span(code).first(size), stack_reader_);
    if (!interrupted) return failed_read_ ? stack_.reason_for(*failed_read_) : StopReason::no_info;
    return go_on(*interrupted, FoundBy::signal, false);
}

Walk::Stop Walk::without_rule() {
    if (means_.rules.work().spent()) return StopReason::too_much_work;
    if (in_entry()) return StopReason::root;
    if (frames_.size() >= max_depth_) return StopReason::max_depth;
    Stop stop;
    if (by_libunwind(stop)) return stop;
    failed_read_.reset();
    if (by_frame_pointer()) return go_on(registers_, FoundBy::frame_pointer, true);
    const bool cut = failed_read_ && stack_.reason_for(*failed_read_) == StopReason::truncated_copy;
    // If the code is readable, the call before that address shows its target. Reject calls that returned earlier.
    const CodePiece* piece = pieces_.at(pc_);
    const bool can_decide = arch_.calls != nullptr && piece != nullptr && piece->module != 0;
    const bool may_return_by_link =
        !return_address_ && (!can_decide || (registers_.has(arch_.names.link) &&
                                             arch_.calls(registers_.get(arch_.names.link), pc_, memory_reader_)));
    if (may_return_by_link && by_link_register()) return push(FoundBy::link_register, sp_);
    return cut ? StopReason::truncated_copy : StopReason::no_info;
}

// For a call to an address without code (a null function pointer), the return address is where the call stored it.
Walk::Stop Walk::without_map() {
    if (return_address_) {
        frames_.pop_back();  // no call returns to an address without code
        return StopReason::no_map;
    }
    if (frames_.size() >= max_depth_) return StopReason::max_depth;
    if (by_link_register()) return push(FoundBy::link_register, sp_);
    std::uint64_t pc = 0;
    if (arch_.names.link != no_register || !stack_.load_word(sp_, pc) || pieces_.at((pc & code_mask_) - 1) == nullptr)
        return StopReason::no_map;
    registers_.keep(preserved_mask_);
    registers_.set(arch_.names.sp, sp_ + arch_.names.word_size);
    registers_.set(arch_.names.pc, pc);
    return_address_ = true;
    return push(FoundBy::link_register, sp_ + arch_.names.word_size);
}

bool Walk::by_libunwind(Stop& stop) {
    if (means_.libunwind == nullptr || !LibunwindStep::available(registers_.arch())) return false;
    const CodePiece* piece = pieces_.at(code_address().lookup());
    ModuleTables* tables = piece != nullptr ? means_.rules.modules().open(piece->module) : nullptr;
    if (tables == nullptr) return false;
    const CodePiece frame_piece = *piece;
    may_open_ = false;  // `tables` must stay open
    const auto caller =
        means_.libunwind->step(registers_, return_address_, frame_piece, *tables, memory_reader_, means_.rules.work());
    may_open_ = true;
    if (!caller) return false;
    stop = caller->has(arch_.names.pc) ? go_on(*caller, FoundBy::libunwind, true) : StopReason::root;
    return true;
}

bool Walk::by_frame_pointer() {
    const std::optional<Registers> caller = arch_.by_frame_pointer(registers_, memory_reader_);
    // Code without tables often has no frame pointer either, and the register can hold anything. The result must be an
    // address in code, and follow a call if that can be checked.
    if (!caller) return false;
    const std::uint64_t address = (caller->pc() & code_mask_) - 1;
    const CodePiece* piece = pieces_.at(address);
    if (piece == nullptr) return false;
    if (arch_.follows_call != nullptr && piece->module != 0) {
        ModuleTables* tables = means_.rules.modules().open(piece->module);
        std::array<std::byte, 1> byte{};
        if (tables != nullptr && tables->read(address - piece->bias, byte) && !can_return_to(caller->pc()))
            return false;
    }
    registers_ = *caller;
    return true;
}

bool Walk::by_link_register() {
    const std::uint8_t link = arch_.names.link;
    if (link == no_register || !registers_.has(link)) return false;
    const std::uint64_t pc = registers_.get(link) & code_mask_;
    if (pc == 0 || pc == pc_ || pieces_.at(pc - 1) == nullptr) return false;
    registers_.keep(preserved_mask_);
    registers_.set(arch_.names.pc, pc);
    return_address_ = true;
    return true;
}

bool Walk::in_entry() {
    const CodePiece* piece = pieces_.at(pc_);
    return piece != nullptr && piece->module != 0 && means_.rules.is_entry(piece->module, pc_ - piece->bias);
}

std::optional<std::uint64_t> Walk::read_stack(std::uint64_t address, std::size_t size) {
    const std::optional<std::uint64_t> value = stack_.read(address, size);
    if (!value) failed_read_ = address;
    return value;
}

std::optional<std::uint64_t> Walk::read_memory(std::uint64_t address, std::size_t size) {
    address &= address_mask_;
    const std::optional<std::uint64_t> on_stack = read_stack(address, size);
    if (on_stack || size == 0 || size > 8) return on_stack;
    const CodePiece* piece = pieces_.at(address);
    if (piece == nullptr) return std::nullopt;
    OpenModules& modules = means_.rules.modules();
    ModuleTables* tables = may_open_ ? modules.open(piece->module) : modules.find(piece->module);
    std::array<std::byte, 8> bytes{};
    if (tables == nullptr || !tables->read(address - piece->bias, std::span(bytes).first(size))) return std::nullopt;
    failed_read_.reset();
    return number_of(std::span(bytes).first(size), means_.options.big_endian);
}

}  // namespace flamewire::unwind
