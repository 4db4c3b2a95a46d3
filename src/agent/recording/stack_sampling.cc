#include "agent/recording/stack_sampling.h"

#include <fmt/format.h>

#include <algorithm>

namespace flamewire::agent {
namespace {

constexpr const char* one_mode_reason = "events of whole CPUs have one mode for all";

}  // namespace

void StackSampling::choose_first_modes() {
    RecordingPlan& plan = setup_.plan;
    state_.modes.clear();
    // Events of whole CPUs have the same mode for all processes. In `auto` mode, the copy budget limits the cost.
    const wire::StackMode automatic = setup_.capabilities.user_stacks ? wire::StackMode::dwarf : wire::StackMode::fp;
    plan.scope.mode = stack_mode(plan.settings.unwind).value_or(automatic);
    for (const std::uint32_t pid : plan.pids) state_.modes[pid] = first_mode(pid);
}

StackChoice StackSampling::first_mode(std::uint32_t pid) const {
    const RecordingPlan& plan = setup_.plan;
    const std::string& unwind = plan.settings.unwind;
    if (unwind != "auto") return {stack_mode(unwind).value_or(wire::StackMode::fp), "as requested"};
    if (!setup_.capabilities.user_stacks)
        return {wire::StackMode::fp, "this kernel copies no user registers and stacks"};
    if (state_.prefers_whole_cpus) return {plan.scope.mode, one_mode_reason};
    return first_choice(plan.launched ? plan.program : fmt::format("/proc/{}/exe", pid));
}

void StackSampling::reset_modes() {
    for (auto& [pid, choice] : state_.modes) choice = first_mode(pid);
}

bool StackSampling::raise_inherited(const StackChoice& choice) {
    bool raised = false;
    for (const std::uint32_t pid : setup_.plan.pids) {
        StackChoice& own = state_.modes[pid];
        if (own.mode >= choice.mode) continue;
        own = choice;
        raised = true;
    }
    return raised;
}

void StackSampling::forget_others(const TargetMembers& members) {
    const std::vector<std::uint32_t>& named = setup_.plan.pids;
    std::erase_if(state_.modes, [&](const auto& mode) {
        return !members.pids().contains(mode.first) && std::ranges::find(named, mode.first) == named.end();
    });
}

void StackSampling::reset_copies(const EventChoice& choice) {
    const RecordingPlan& plan = setup_.plan;
    CopyBudget::Options options;
    options.adaptive = plan.settings.unwind == "auto" && setup_.capabilities.user_stacks;
    options.whole_cpus = plan.scope.wide || state_.prefers_whole_cpus;
    options.configured_bytes = plan.settings.stack_bytes;
    options.ring_bytes = std::uint64_t{plan.ring_pages} * setup_.machine.page_size;
    const std::size_t cpus = plan.scope.cpus.empty() ? setup_.machine.cpus : plan.scope.cpus.size();
    options.max_samples_per_second = cpus * sample_rate(choice);
    state_.copies.reset(options);
}

wire::StackMode StackSampling::mode_of(std::uint32_t pid) const {
    const Modes& modes = state_.modes;
    const RecordingPlan& plan = setup_.plan;
    if (const auto own = modes.find(pid); own != modes.end()) return own->second.mode;
    if (plan.pids.empty()) return plan.scope.mode;
    const auto first = modes.find(plan.pids.front());
    return first == modes.end() ? wire::StackMode::fp : first->second.mode;
}

EventSetOptions StackSampling::event_options(const EventChoice& choice, const std::vector<std::uint32_t>& pids) const {
    const RecordingPlan& plan = setup_.plan;
    const Settings& settings = plan.settings;
    EventSetOptions options;
    options.choice = choice;
    options.scope = plan.scope;
    for (const std::uint32_t pid : pids) options.targets.push_back({pid, mode_of(pid)});
    options.stack_bytes = state_.copies.stack_bytes();
    options.copy_at_switches = state_.copies.config().at_switches;
    options.prefer_whole_cpus = state_.prefers_whole_cpus;
    if (state_.copies.config().size == CopySize::none) {
        options.scope.mode = wire::StackMode::fp;
        for (Target& one : options.targets) one.mode = wire::StackMode::fp;
    }
    options.automatic_modes = settings.unwind == "auto";
    options.max_depth = settings.max_depth_given ? settings.max_depth : 0;
    options.ring_pages = plan.ring_pages;
    return options;
}

std::optional<UserStackOptions> StackSampling::unwinding() const {
    const RecordingPlan& plan = setup_.plan;
    const Settings& settings = plan.settings;
    // Without registers, the architecture of a chain's process is unknown.
    if (settings.unwind == "fp" || setup_.capabilities.register_mask == 0) return std::nullopt;
    UserStackOptions options;
    options.check_chains = settings.unwind == "auto" || settings.unwind == "hybrid";
    if (settings.unwind == "auto")
        options.inherited_reason =
            plan.scope.wide || state_.prefers_whole_cpus ? one_mode_reason : "as the process that started it";
    options.machine = setup_.capabilities.register_arch;
    options.max_depth = settings.max_depth;
    options.address_bits = setup_.machine.address_bits;
    options.memory_bytes = static_cast<std::size_t>(settings.unwind_memory_bytes);
    return options;
}

}  // namespace flamewire::agent
