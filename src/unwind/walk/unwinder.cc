// The library's public interface: owns the state that outlives a walk, and counts.
#include "unwind/walk/unwinder.h"

#include "unwind/walk/libunwind_step.h"
#include "unwind/walk/rule_source.h"
#include "unwind/walk/walk.h"

namespace flamewire::unwind {

struct Unwinder::State {
    State(ModuleFiles& files, const UnwinderOptions& wanted)
        : options(wanted), rules(files, wanted.open_tables, wanted.memory_bytes) {}

    UnwinderOptions options;
    RuleSource rules;
    LibunwindStep libunwind;
    Counts counts;
    Cut cut;
};

Unwinder::Unwinder(ModuleFiles& files, UnwinderOptions options) : state_(std::make_unique<State>(files, options)) {}
Unwinder::~Unwinder() = default;

void Unwinder::begin_round() { state_->rules.work().begin_round(); }
void Unwinder::begin_stack() { state_->rules.work().begin_stack(); }
bool Unwinder::work_spent() const { return state_->rules.work().spent(); }
bool Unwinder::stack_spent() const { return state_->rules.work().stack_spent(); }

StopReason Unwinder::walk(const Registers& start, const StackCopy& stack, CodeMap& map, std::size_t max_depth,
                          std::vector<Frame>& frames) {
    State& state = *state_;
    begin_stack();
    Walk walk({.rules = state.rules,
               .libunwind = state.options.use_libunwind ? &state.libunwind : nullptr,
               .options = state.options,
               .counts = state.counts},
              start, stack, map, max_depth, frames);
    const StopReason stop = walk.run();
    if (stop == StopReason::truncated_copy || stop == StopReason::bad_read)
        state.cut = {walk.registers(), walk.unread_pc_at()};
    ++state.counts.walks;
    state.counts.frames += frames.size();
    ++state.counts.stopped[static_cast<std::size_t>(stop)];
    return stop;
}

const Unwinder::Cut& Unwinder::cut() const { return state_->cut; }

std::uint64_t Unwinder::address_of(Arch arch, std::uint64_t saved_pc) const {
    return saved_pc & code_mask_of(arch, state_->options);
}

Unwinder::PcFacts Unwinder::facts(Arch arch, CodeAddress pc, CodeMap& map) {
    const std::uint64_t address = pc.lookup();
    const std::optional<CodePiece> piece = map.find(address);
    if (!piece) return {};
    const bool has_file = piece->module != 0;
    const std::optional<Rule> found =
        has_file ? state_->rules.rule(RuleKey(piece->module, address - piece->bias, pc.return_address), arch)
                 : map.rule_at(*piece, arch, pc);
    if (!found) return {.mapped = true};
    const Rule& rule = *found;
    PcFacts facts{.mapped = true,
                  .known = rule.kind != Rule::Kind::none,
                  .frame_pointer_safe = rule.frame_pointer_safe,
                  .frame_pointer_same = leaves_frame_pointer(rule, arch_info(arch)),
                  .skips_caller = rule.skips_caller,
                  .root = rule.kind == Rule::Kind::root};
    // During the code's call the register still holds the caller's frame pointer.
    if (!has_file && pc.return_address && facts.frame_pointer_same && !rule.return_in_link)
        facts.skips_caller = facts.skips_caller_of_jit = true;
    if (!facts.known) facts.root = state_->rules.is_entry(piece->module, pc.value - piece->bias);
    if (rule.after != 0) {
        facts.row_start = address - rule.before;
        facts.row_end = address + rule.after;
    }
    return facts;
}

Unwinder::Survey Unwinder::survey(ModuleId module, Arch arch) {
    constexpr std::size_t sample = 64;
    Survey survey;
    begin_stack();
    ModuleTables* tables = state_->rules.modules().open(module);
    if (tables == nullptr || tables->arch() != arch) return survey;
    survey.switches_stacks = tables->switches_stacks();
    std::uint64_t all = 0, safe = 0;
    for (const CodeRange& function : tables->some_functions(sample)) {
        const std::optional<FrameRow> row = tables->row_at(function.start + function.size / 2);
        if (!row || function.size == 0) continue;
        const Rule rule = compile_rule(*row, arch_info(arch));
        if (rule.kind == Rule::Kind::root || rule.kind == Rule::Kind::row) continue;
        ++survey.functions;
        all += function.size;
        if (rule.frame_pointer_safe) safe += function.size;
    }
    state_->rules.modules().account(module);
    if (all != 0) survey.frame_pointer_share = static_cast<double>(safe) / static_cast<double>(all);
    return survey;
}

void Unwinder::forget(ModuleId module) { state_->rules.forget(module); }

const Unwinder::Counts& Unwinder::counts() const {
    state_->counts.rules_compiled = state_->rules.compiled();
    return state_->counts;
}

std::size_t Unwinder::memory_bytes() const { return state_->rules.memory_bytes(); }

}  // namespace flamewire::unwind
