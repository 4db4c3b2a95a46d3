#include "agent/pipeline/stack_policy.h"

#include <fmt/format.h>

#include <numeric>
#include <utility>

#include "base/decimal.h"
#include "base/file.h"

namespace flamewire::agent {
namespace {

using unwind::StackNeed;
using wire::StackMode;

// Share of a program's code. Compilers omit the frame pointer in a few functions regardless of their options.
constexpr double share_of_a_frame_pointer_program = 0.9;
// Below this, functions without a frame pointer are more than entry stubs, and one of them can be hot. A chain then
// leaves out its caller.
constexpr double share_where_chains_are_enough = 0.985;
// A mode is enough if it fails for at most this many of 1,000 stacks.
constexpr std::uint64_t tolerated_of_1000 = 5;
// A mode is too small only after at least this many stacks and misses.
constexpr std::uint64_t stacks_to_raise = 32, misses_to_raise = 3;
// The same for one process if it fails for most of them, so that a short recording is not over before.
constexpr std::uint64_t stacks_to_raise_soon = 8;
// A mode is larger than needed only after this many stacks and this time.
constexpr std::uint64_t stacks_to_lower = 1000, ns_to_lower = 5'000'000'000;
// The first stacks of a process also count for the inherited mode. Only several processes together can raise it.
constexpr std::uint64_t stacks_for_others = 8;
// A process whose mode was raised this often has different phases, so its mode is not lowered any more.
constexpr std::uint32_t most_raises = 2;

// After this many stacks, all counts are halved, so that a change becomes visible.
constexpr std::uint64_t stacks_remembered = 4000;

constexpr std::size_t most_processes = 8192;

constexpr std::size_t survey_memory = std::size_t{1} << 20;

class OneFile final : public unwind::ModuleFiles {
public:
    explicit OneFile(int fd) : fd_(fd) {}
    Result<elf::ByteSource> open(unwind::ModuleId) override { return elf::source_of_fd(fd_); }

private:
    int fd_;
};

using Needs = std::array<std::uint64_t, unwind::stack_needs>;

std::uint64_t total(const Needs& needs) { return std::accumulate(needs.begin(), needs.end(), std::uint64_t{0}); }

// The number of stacks for which `mode` is not enough.
std::uint64_t misses(const Needs& needs, StackMode mode) {
    const std::uint64_t copies = needs[static_cast<std::size_t>(StackNeed::short_copy)];
    const std::uint64_t long_copies = needs[static_cast<std::size_t>(StackNeed::long_copy)];
    if (mode == StackMode::fp) return copies + long_copies;
    return mode == StackMode::hybrid ? long_copies : 0;
}

}  // namespace

StackChoice first_choice(const std::string& path) {
    const auto fd = open_read(path);
    const auto header = fd ? elf::read_header(elf::source_of_fd(fd->get())) : Result<elf::Header>(elf::Header{});
    const auto arch = fd && header ? unwind::arch_of_machine(header->machine) : std::nullopt;
    if (!arch)
        return {StackMode::dwarf,
                fd ? "its program file is not an ELF file, for example a script" : "its program file cannot be read"};
    OneFile file(fd->get());
    unwind::Unwinder unwinder(file, {.memory_bytes = survey_memory, .big_endian = header->big_endian});
    const unwind::Unwinder::Survey survey = unwinder.survey(1, *arch);
    if (survey.functions == 0) return {StackMode::dwarf, "its unwind tables give no more information"};
    if (survey.switches_stacks)
        return {StackMode::hybrid, "it is a Go program, and goroutines have stacks of their own"};
    StackMode mode = StackMode::dwarf;
    if (survey.frame_pointer_share >= share_of_a_frame_pointer_program) mode = StackMode::hybrid;
    if (survey.frame_pointer_share >= share_where_chains_are_enough) mode = StackMode::fp;
    return {mode, fmt::format("{} % of its program's code keeps the frame pointer ({} functions checked)",
                              fixed(100.0 * survey.frame_pointer_share, 0), survey.functions)};
}

void StackPolicy::note_other_stack(std::uint64_t process) {
    const auto found = processes_.find(process);
    if (found != processes_.end()) found->second.other_stacks = true;
}

void StackPolicy::note(std::uint64_t process, StackMode mode, StackNeed need, std::uint64_t time_ns) {
    // Most of that many processes have exited. Live ones are measured again.
    if (processes_.size() >= most_processes && !processes_.contains(process)) processes_.clear();
    State& state = processes_[process];
    add(state, mode, need, time_ns);
    if (state.why.empty() && total(state.needs) <= stacks_for_others)
        add(inherited_[static_cast<std::size_t>(mode)], mode, need, time_ns);
}

void StackPolicy::add(State& state, StackMode mode, StackNeed need, std::uint64_t time_ns) {
    if (state.since_ns == 0 || state.mode != mode) {
        state.mode = mode;
        state.since_ns = time_ns;
        state.needs = {};
    }
    state.newest_ns = time_ns;
    ++state.needs[static_cast<std::size_t>(need)];
    if (total(state.needs) >= stacks_remembered)
        for (std::uint64_t& count : state.needs) count /= 2;
}

// Returns true and sets `choice` if the mode should change. It can be too small after `soonest` stacks.
bool StackPolicy::needs_change(const State& state, std::uint64_t soonest, StackChoice& choice) {
    const std::uint64_t seen = total(state.needs);
    Needs needs = state.needs;
    // A chain is best for stacks that no copy contains.
    if (state.other_stacks)
        needs[static_cast<std::size_t>(StackNeed::short_copy)] +=
            std::exchange(needs[static_cast<std::size_t>(StackNeed::long_copy)], 0);
    const auto served = [&](StackMode mode) { return misses(needs, mode) * 1000 <= seen * tolerated_of_1000; };
    StackMode smallest = StackMode::dwarf;
    if (served(StackMode::hybrid)) smallest = StackMode::hybrid;
    if (served(StackMode::fp)) smallest = StackMode::fp;
    if (smallest == state.mode) return false;

    const std::uint64_t missed = misses(needs, state.mode);
    if (!served(state.mode)) {
        const std::uint64_t enough = missed * 2 > seen ? soonest : stacks_to_raise;
        if (seen < enough || missed < misses_to_raise) return false;
    } else {
        // The current, larger mode has measured all stacks. Lower it only after enough of them, and enough time.
        const bool long_enough = seen >= stacks_to_lower && state.newest_ns - state.since_ns >= ns_to_lower;
        if (!long_enough || state.raised >= most_raises) return false;
    }
    choice.mode = smallest;
    choice.why = fmt::format(
        "of {} stacks, {} are right by frame pointers alone, {} need the innermost frames from a short copy, {} need a "
        "long one",
        seen, state.needs[0], state.needs[1], state.needs[2]);
    if (state.other_stacks) choice.why += "; some continue on another stack, which only frame pointers can follow";
    return true;
}

std::vector<StackPolicy::Change> StackPolicy::wanted() const {
    std::vector<Change> changes;
    for (const auto& [process, state] : processes_)
        if (StackChoice choice; needs_change(state, stacks_to_raise_soon, choice))
            changes.push_back({process, std::move(choice)});
    for (const State& state : inherited_)
        if (StackChoice choice; needs_change(state, stacks_to_raise, choice) && choice.mode > state.mode) {
            choice.why = "of the processes that it started: " + choice.why;
            changes.push_back({inherited, std::move(choice)});
        }
    return changes;
}

void StackPolicy::chose(std::uint64_t process, const StackChoice& choice) {
    if (process == inherited) {
        inherited_ = {};
        return;
    }
    State& state = processes_[process];
    if (state.since_ns != 0 && choice.mode > state.mode) ++state.raised;
    state.mode = choice.mode;
    state.why = choice.why;
    state.since_ns = 0;
    state.needs = {};
}

const std::string& StackPolicy::why(std::uint64_t process) const {
    static const std::string nothing;
    const auto found = processes_.find(process);
    return found == processes_.end() ? nothing : found->second.why;
}

}  // namespace flamewire::agent
