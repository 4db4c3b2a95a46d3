#include "agent/process/jit_names.h"

#include <algorithm>
#include <iterator>

namespace flamewire::agent {
namespace {

constexpr std::size_t max_functions = 16'384, max_bare = 16'384;
constexpr std::size_t max_name_bytes = std::size_t{4} << 20;
// All modules together; above it, each may have max_crowded_bytes.
constexpr std::size_t max_all_name_bytes = std::size_t{64} << 20, max_crowded_bytes = std::size_t{512} << 10;
// How long the sampler waits for the reader, which mostly only needs to check the size of a file.
constexpr std::uint64_t poll_timeout_ns = 10'000'000;
// How long samples stay in the rings for a reader that is late; rings have room for twice that.
constexpr std::uint64_t most_wait_ns = 50'000'000;
// Number of samples without a name that justifies a notice.
constexpr std::size_t many_unnamed = 8;
// Limits for answers that wait for samples of their time, in number and bytes; the last batch taken may exceed them.
constexpr std::size_t max_waiting = 16'384, max_waiting_bytes = std::size_t{8} << 20;

}  // namespace

void JitNames::add(const JitProcess& process, ProcessHandle owner) {
    codes_[process.module].owner = owner;
    questions_.processes.push_back(process);
}

void JitNames::found_jitdump(const JitProcess& process) { questions_.processes.push_back(process); }

bool JitNames::has_room(ModuleHandle module) const {
    const auto code = codes_.find(module);
    const std::size_t most_bytes = name_bytes_ < max_all_name_bytes ? max_name_bytes : max_crowded_bytes;
    return code == codes_.end() || (code->second.functions.size() < max_functions &&
                                    code->second.bare.size() < max_bare && code->second.name_bytes < most_bytes);
}

void JitNames::forget(ModuleHandle module) {
    if (const auto code = codes_.find(module); code != codes_.end()) {
        name_bytes_ -= code->second.name_bytes;
        codes_.erase(code);
    }
    JitProcess nobody;
    nobody.module = module;
    questions_.processes.push_back(nobody);
}

std::vector<std::pair<ModuleHandle, ProcessHandle>> JitNames::owners() const {
    std::vector<std::pair<ModuleHandle, ProcessHandle>> owners;
    owners.reserve(codes_.size());
    for (const auto& [module, code] : codes_) owners.emplace_back(module, code.owner);
    return owners;
}

std::optional<JitFunction> JitNames::find(ModuleHandle module, std::uint64_t address, std::uint64_t time_ns) {
    const auto code = codes_.find(module);
    if (code == codes_.end()) return std::nullopt;
    const auto* range = code->second.functions.find(address);
    if (range == nullptr) {
        if (code->second.bare.try_emplace(address, time_ns).second)
            questions_.wants.push_back({module, address, time_ns});
        return std::nullopt;
    }
    const JitBody& body = *range->second.value;
    JitFunction function{body.name, {}, 0};
    // A row is valid up to the next one.
    const auto after =
        std::upper_bound(body.rows.begin(), body.rows.end(), address - body.start,
                         [](std::uint64_t offset, const JitBody::Row& row) { return offset < row.offset; });
    if (after != body.rows.begin()) {
        const JitBody::Row& row = *std::prev(after);
        function.file = body.files[row.file];
        function.line = row.line;
    }
    return function;
}

void JitNames::saw_unnamed(ModuleHandle module) {
    const auto code = codes_.find(module);
    if (code != codes_.end() && ++code->second.unnamed_samples == many_unnamed)
        questions_.often_unnamed.push_back(module);
}

std::optional<unwind::Rule> JitNames::rule_at(ModuleHandle module, unwind::Arch arch, std::uint64_t address) const {
    const auto code = codes_.find(module);
    const auto* range = code == codes_.end() ? nullptr : code->second.functions.find(address);
    return range == nullptr ? std::nullopt
                            : range->second.value->rules.find(address - range->second.value->start, arch);
}

std::vector<ProcessHandle> JitNames::apply(std::uint64_t time_ns) {
    std::vector<ProcessHandle> changed;
    for (; applied_ < answers_.size() && answers_[applied_].from_ns <= time_ns; ++applied_) {
        waiting_bytes_ -= bytes_of(*answers_[applied_].body);
        const auto code = codes_.find(answers_[applied_].module);
        if (code != codes_.end() && apply_one(answers_[applied_], code->second)) changed.push_back(code->second.owner);
    }
    poll_ahead();
    return changed;
}

void JitNames::poll_ahead() {
    next_change_ns_ =
        applied_ < answers_.size() ? answers_[applied_].from_ns : std::numeric_limits<std::uint64_t>::max();
}

// True if earlier results may have differed.
bool JitNames::apply_one(const JitAnswer& answer, Code& code) {
    bool changed = false;
    code.functions.for_each_in(answer.start, answer.end, [&](const auto& range) {
        changed |= range.second.value->name != answer.body->name || !answer.body->rows.empty();
    });
    auto bare = code.bare.lower_bound(answer.start);
    while (bare != code.bare.end() && bare->first < answer.end) {
        // The function that replaced this one is not yet known.
        if (bare->second >= answer.until_ns) {
            ++bare;
            continue;
        }
        const bool named = may_name(bare->second, answer.from_ns);
        if (named) symbols_.push_back({answer.module, bare->first, 1, answer.body->name});
        // Addresses that were already sent get a name, but no line. Lines require that addresses are resolved again.
        changed |= !named || !answer.body->rows.empty();
        bare = code.bare.erase(bare);
    }
    code.name_bytes += bytes_of(*answer.body);
    name_bytes_ += bytes_of(*answer.body);
    code.functions.lay(answer.start, answer.end, answer.body);
    return changed;
}

void JitNames::take_answers() {
    if (answers_.size() - applied_ >= max_waiting || waiting_bytes_ >= max_waiting_bytes) return;
    JitAnswers taken = reader_.take();
    waiting_bytes_ += taken.bytes;
    answers_.erase(answers_.begin(), answers_.begin() + static_cast<std::ptrdiff_t>(std::exchange(applied_, 0)));
    answers_.insert(answers_.end(), std::make_move_iterator(taken.answers.begin()),
                    std::make_move_iterator(taken.answers.end()));
    if (taken.known_until_ns != 0) known_until_ns_ = taken.known_until_ns;
    for (wire::Notice& notice : taken.notices) notices_.push_back(std::move(notice));
    poll_ahead();
}

std::uint64_t JitNames::exchange(std::uint64_t now_ns) {
    if (codes_.empty()) return std::numeric_limits<std::uint64_t>::max();
    reader_.ask(questions_);
    reader_.poll_now(poll_timeout_ns);
    take_answers();
    return std::max(known_until_ns_, now_ns - std::min(now_ns, most_wait_ns));
}

void JitNames::settle(std::uint64_t patience_ns) {
    if (codes_.empty()) return;
    constexpr std::uint64_t ever = std::numeric_limits<std::uint64_t>::max();
    (void)apply(ever);
    // Twice, because the reader may first be busy with the previous questions.
    for (int i = 0; i < 2; ++i) {
        reader_.ask(questions_);
        reader_.settle(patience_ns / 2);
        take_answers();
        (void)apply(ever);
    }
}

}  // namespace flamewire::agent
