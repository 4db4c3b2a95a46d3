#include "unwind/code/code_path.h"

#include "unwind/frame/registers.h"

namespace flamewire::unwind {
namespace {

using Kind = CodeEffect::Kind;

// Limit of words stored on one path.
constexpr std::size_t most_stores = 32;

}  // namespace

Value Value::as_address(const CodeConvention& convention) const {
    if (kind == Kind::address) return *this;
    const bool of_stack = reg == convention.sp || has(convention.frame_pointers, reg);
    if (kind == Kind::unknown || indirect || !of_stack) return {};
    return {.kind = Kind::address, .reg = reg, .indirect = true, .at = add};
}

CodePath::CodePath(const CodeConvention& convention, std::uint64_t start, bool return_address)
    : at(start), called(return_address) {
    const std::uint32_t known =
        return_address ? convention.preserved | 1u << convention.sp : convention.known_when_stopped;
    for (std::uint8_t number = 0; number < most_registers; ++number)
        if (has(known, number)) registers[number] = initial(number);
}

Value CodePath::load(const Value& where) const {
    if (where.kind != Value::Kind::address) return {};
    for (auto store = stores.rbegin(); store != stores.rend(); ++store)
        if (store->where == where) return store->what;
    Value value = where;
    value.kind = Value::Kind::stored;
    return value;
}

bool pushes_link(const CodeConvention& convention, const CodeEffect& effect) {
    return convention.link != no_register && effect.kind == Kind::push && has(effect.mask, convention.link);
}

void return_to_caller(const CodeConvention& convention, CodePath& path) {
    auto& registers = path.registers;
    if (convention.link != no_register) {
        registers[convention.pc] = registers[convention.link];
        return;
    }
    const Value where = registers[convention.sp];
    registers[convention.pc] = path.load(where);
    registers[convention.sp].add += convention.word_size;
}

static StepResult push(const CodeConvention& convention, CodePath& path, const CodeEffect& effect) {
    auto& registers = path.registers;
    Value& stack = registers[convention.sp];
    // Only a prologue pushes the link register. If a call came before, that call does not return, and another
    // function starts here.
    if (pushes_link(convention, effect) && registers[convention.link].kind == Value::Kind::unknown)
        return StepResult::ends;
    stack.add -= effect.bytes;
    Value where = stack;
    if (where.kind == Value::Kind::unknown) return StepResult::continues;
    for (std::uint8_t number = 0; number < convention.pc; ++number) {
        if (!has(effect.mask, number)) continue;
        if (path.stores.size() >= most_stores) return StepResult::ends;
        path.stores.push_back({where, registers[number]});
        where.add += convention.word_size;
    }
    return StepResult::continues;
}

static StepResult pop(const CodeConvention& convention, CodePath& path, const CodeEffect& effect) {
    auto& registers = path.registers;
    Value& stack = registers[convention.sp];
    Value where = stack;
    stack.add += effect.bytes;
    for (std::uint8_t number = 0; number < most_registers; ++number) {
        if (!has(effect.mask, number)) continue;
        registers[number] = number == convention.sp ? path.load(where).as_address(convention) : path.load(where);
        where.add += convention.word_size;
    }
    return has(effect.mask, convention.pc) ? StepResult::returns : StepResult::continues;
}

static StepResult access(const CodeConvention& convention, CodePath& path, const CodeEffect& effect) {
    auto& registers = path.registers;
    Value where = registers[effect.base].as_address(convention);
    where.add += effect.bytes;
    if (effect.kind == Kind::load)
        registers[effect.reg] =
            effect.reg == convention.sp ? path.load(where).as_address(convention) : path.load(where);
    // Keep the first stores: a function saves registers before it spills others.
    else if (where.kind == Value::Kind::address && path.stores.size() < most_stores)
        path.stores.push_back({where, registers[effect.reg]});
    return StepResult::continues;
}

StepResult run(const CodeConvention& convention, CodePath& path, const CodeEffect& effect) {
    auto& registers = path.registers;
    Value& stack = registers[convention.sp];
    switch (effect.kind) {
        case Kind::none:
        case Kind::branch:
        case Kind::jump: return StepResult::continues;
        case Kind::call:
            for (std::uint8_t number = 0; number < most_registers; ++number)
                if (has(convention.lost_by_call, number)) registers[number] = {};
            path.called = true;
            return StepResult::continues;
        case Kind::push: return push(convention, path, effect);
        case Kind::leave: stack = registers[effect.reg].as_address(convention); [[fallthrough]];
        case Kind::pop: return pop(convention, path, effect);
        case Kind::add: stack.add += effect.bytes; return StepResult::continues;
        case Kind::add_to:
            if (registers[effect.reg].kind == Value::Kind::address)
                registers[effect.reg].add += effect.bytes;
            else
                registers[effect.reg] = {};
            return StepResult::continues;
        case Kind::copy_to:
            // As in push(), without a link register: only a prologue sets the frame pointer.
            if (convention.link == no_register && path.called && has(convention.frame_pointers, effect.reg))
                return StepResult::ends;
            registers[effect.reg] = stack;
            registers[effect.reg].add += effect.bytes;
            return StepResult::continues;
        case Kind::copy_from:
            stack = registers[effect.reg].as_address(convention);
            stack.add += effect.bytes;
            return StepResult::continues;
        case Kind::compute_sp:  // until it is restored from the frame pointer
            stack = {};
            return StepResult::continues;
        case Kind::forget: registers[effect.reg] = {}; return StepResult::continues;
        case Kind::load:
        case Kind::store: return access(convention, path, effect);
        case Kind::returns: return_to_caller(convention, path); return StepResult::returns;
        case Kind::indirect: return_to_caller(convention, path); return StepResult::may_have_returned;
        case Kind::other: break;
    }
    return StepResult::ends;
}

}  // namespace flamewire::unwind
