#include "agent/recording/stack_sampling.h"

#include <catch2/catch.hpp>
#include <unistd.h>

using namespace flamewire;
using namespace flamewire::agent;
using wire::StackMode;

namespace {

constexpr std::uint32_t first = 100, second = 200, child = 300;

RecordingSetup setup_with(std::string unwind, std::vector<std::uint32_t> pids) {
    RecordingSetup setup;
    setup.plan.pids = std::move(pids);
    setup.plan.settings.unwind = std::move(unwind);
    setup.machine.cpus = 1;
    setup.machine.page_size = 4'096;
    setup.capabilities.user_stacks = true;
    setup.capabilities.register_mask = 1;
    return setup;
}

}  // namespace

TEST_CASE("a stack mode that the user names is that of all processes") {
    RecordingSetup setup = setup_with("hybrid", {first, second});
    StackSampling stacks(setup);
    stacks.choose_first_modes();
    CHECK(setup.plan.scope.mode == StackMode::hybrid);
    REQUIRE(stacks.modes().size() == 2);
    CHECK(stacks.mode(first).mode == StackMode::hybrid);
    CHECK(stacks.mode(second).why == "as requested");
    REQUIRE(stacks.unwinding().has_value());
    CHECK(stacks.unwinding()->check_chains);
    setup.plan.settings.unwind = "fp";
    CHECK_FALSE(stacks.unwinding().has_value());
}

TEST_CASE("auto samples frame pointers if the kernel does not copy stacks, and one mode for whole CPUs") {
    RecordingSetup setup = setup_with("auto", {first});
    setup.capabilities.user_stacks = false;
    StackSampling stacks(setup);
    stacks.choose_first_modes();
    CHECK(stacks.mode(first).mode == StackMode::fp);
    CHECK(setup.plan.scope.mode == StackMode::fp);
    setup.capabilities.user_stacks = true;
    stacks.prefer_whole_cpus(true);
    stacks.choose_first_modes();
    CHECK(stacks.mode(first).mode == StackMode::dwarf);
    CHECK(stacks.mode(first).why == "events of whole CPUs have one mode for all");
    CHECK(stacks.event_options({}, {first}).prefer_whole_cpus);
}

TEST_CASE("children are sampled like the first process, which can be raised") {
    RecordingSetup setup = setup_with("fp", {first, second});
    StackSampling stacks(setup);
    stacks.choose_first_modes();
    stacks.set_mode(first, {StackMode::hybrid, "its stacks"});
    const auto mode_of = [&](std::uint32_t pid) { return stacks.event_options({}, {pid}).targets.front().mode; };
    CHECK(mode_of(first) == StackMode::hybrid);
    CHECK(mode_of(second) == StackMode::fp);
    CHECK(mode_of(child) == StackMode::hybrid);
    CHECK(stacks.raise_inherited({StackMode::dwarf, "stacks of children"}));
    CHECK(mode_of(second) == StackMode::dwarf);
    CHECK_FALSE(stacks.raise_inherited({StackMode::hybrid, "stacks of others"}));
    CHECK_FALSE(stacks.raise_inherited({StackMode::dwarf, "the same again"}));
    CHECK(mode_of(child) == StackMode::dwarf);
    stacks.set_mode(child, {StackMode::fp, "its stacks"});
    CHECK(mode_of(child) == StackMode::fp);

    setup.plan.pids = {first};
    stacks.forget_others(TargetMembers(setup.plan));
    CHECK(stacks.modes().size() == 1);
    stacks.reset_modes();
    CHECK(mode_of(first) == StackMode::fp);
}

TEST_CASE("a state of stack sampling can be restored") {
    RecordingSetup setup = setup_with("fp", {first});
    StackSampling stacks(setup);
    stacks.choose_first_modes();
    const StackSampling::State before = stacks.state();
    stacks.prefer_whole_cpus(true);
    stacks.set_mode(second, {StackMode::dwarf, "its stacks"});
    stacks.restore(before);
    CHECK(stacks.modes().size() == 1);
    CHECK_FALSE(stacks.prefers_whole_cpus());
}

TEST_CASE("without stack copies, all samples have frame pointers only") {
    RecordingSetup setup = setup_with("dwarf", {first});
    setup.plan.settings.stack_bytes = 16'384;
    StackSampling stacks(setup);
    stacks.choose_first_modes();
    stacks.reset_copies({});
    EventSetOptions options = stacks.event_options({}, {first});
    CHECK(options.stack_bytes == 16'384);
    CHECK(options.copy_at_switches);
    CHECK(options.targets.front().mode == StackMode::dwarf);
    stacks.copies().apply({CopySize::none, false}, 0);
    options = stacks.event_options({}, {first});
    CHECK(options.targets.front().mode == StackMode::fp);
    CHECK(options.scope.mode == StackMode::fp);
    CHECK_FALSE(options.copy_at_switches);
}
