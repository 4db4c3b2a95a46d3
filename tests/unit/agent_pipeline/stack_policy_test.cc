#include "agent/pipeline/stack_policy.h"

#include <catch2/catch.hpp>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>

#include "base/fd.h"

using namespace flamewire;
using namespace flamewire::agent;
using unwind::StackNeed;
using wire::StackMode;

namespace {

constexpr std::uint64_t ms = 1'000'000;

struct Process {
    StackPolicy policy;
    StackMode mode = StackMode::fp;
    std::uint64_t now = 1000 * ms;

    // `of_1000` of 1,000 stacks need `need`, the others only the chain.
    void run(unsigned stacks, unsigned of_1000, StackNeed need) {
        for (unsigned i = 0; i < stacks; ++i) {
            now += 10 * ms;
            policy.note(7, mode, i % 1000 < of_1000 ? need : StackNeed::chain, now);
        }
    }
    // Follows the policy as the recorder does.
    bool follow() {
        const auto changes = policy.wanted();
        if (changes.empty()) return false;
        REQUIRE(changes.size() == 1);
        REQUIRE(changes[0].process == 7);
        REQUIRE(!changes[0].choice.why.empty());
        policy.chose(7, changes[0].choice);
        mode = changes[0].choice.mode;
        return true;
    }
};

}  // namespace

TEST_CASE("a program with frame pointers keeps them") {
    Process process;
    process.run(100'000, 4, StackNeed::short_copy);
    REQUIRE_FALSE(process.follow());
}

TEST_CASE("a program whose stacks continue in other code needs chains and short copies") {
    Process process;
    process.run(1, 0, StackNeed::chain);
    process.policy.note_other_stack(7);
    process.run(64, 1000, StackNeed::long_copy);
    REQUIRE(process.follow());
    REQUIRE(process.mode == StackMode::hybrid);
    process.run(5000, 1000, StackNeed::long_copy);
    REQUIRE_FALSE(process.follow());
}

TEST_CASE("processes with few stacks each raise the mode that new processes inherit") {
    StackPolicy policy;
    const auto start = [&](std::uint64_t process, StackMode mode, StackNeed need) {
        for (int i = 0; i < 4; ++i) policy.note(process, mode, need, process * ms);
    };
    for (std::uint64_t process = 1; process <= 7; ++process) start(process, StackMode::fp, StackNeed::long_copy);
    CHECK(policy.wanted().empty());
    start(8, StackMode::fp, StackNeed::long_copy);
    const auto changes = policy.wanted();
    REQUIRE(changes.size() == 1);
    CHECK(changes[0].process == StackPolicy::inherited);
    CHECK(changes[0].choice.mode == StackMode::dwarf);
    CHECK(changes[0].choice.why.starts_with("of the processes that it started: of 32 stacks, 0 are right"));
    policy.chose(StackPolicy::inherited, {});
    CHECK(policy.wanted().empty());
    // They never lower it.
    for (std::uint64_t process = 1'000; process <= 2'000; ++process) start(process, StackMode::dwarf, StackNeed::chain);
    CHECK(policy.wanted().empty());
    // A process with its own mode decides for itself.
    policy.chose(7, {StackMode::fp, "chosen"});
    for (int i = 0; i < 10; ++i) start(7, StackMode::fp, StackNeed::long_copy);
    const auto own = policy.wanted();
    REQUIRE(own.size() == 1);
    CHECK(own[0].process == 7);
}

TEST_CASE("a few stacks suffice to detect missing frame pointers") {
    Process process;
    SECTION("a long copy") {
        process.run(32, 1000, StackNeed::long_copy);
        REQUIRE(process.follow());
        REQUIRE(process.mode == StackMode::dwarf);
    }
    SECTION("a short copy") {
        process.run(32, 1000, StackNeed::short_copy);
        REQUIRE(process.follow());
        REQUIRE(process.mode == StackMode::hybrid);
    }
    SECTION("eight, if most of them lack callers") {
        process.run(2, 0, StackNeed::chain);
        process.run(5, 1000, StackNeed::long_copy);
        REQUIRE_FALSE(process.follow());
        process.run(1, 1000, StackNeed::long_copy);
        REQUIRE(process.follow());
        REQUIRE(process.mode == StackMode::dwarf);
    }
    SECTION("not eight, if half of them lack callers") {
        process.run(4, 1000, StackNeed::long_copy);
        process.run(27, 0, StackNeed::chain);
        REQUIRE_FALSE(process.follow());
        process.run(1, 0, StackNeed::chain);
        REQUIRE(process.follow());
        REQUIRE(process.mode == StackMode::dwarf);
    }
    SECTION("a single outlier does not suffice") {
        process.run(31, 1000, StackNeed::chain);
        process.run(1, 1000, StackNeed::long_copy);
        REQUIRE_FALSE(process.follow());
    }
    REQUIRE_FALSE(process.follow());
}

TEST_CASE("a large copy that no stack needed becomes a small one, after some time") {
    Process process;
    process.mode = StackMode::dwarf;
    process.run(900, 1000, StackNeed::short_copy);
    REQUIRE_FALSE(process.follow());
    process.run(200, 1000, StackNeed::short_copy);
    REQUIRE(process.follow());
    REQUIRE(process.mode == StackMode::hybrid);
    process.run(1100, 0, StackNeed::short_copy);
    REQUIRE(process.follow());
    REQUIRE(process.mode == StackMode::fp);
}

TEST_CASE("a process with different phases does not switch back and forth forever") {
    Process process;
    int changes = 0;
    for (int phase = 0; phase < 20; ++phase) {
        process.run(5000, 1000, phase % 2 == 0 ? StackNeed::long_copy : StackNeed::chain);
        while (process.follow()) ++changes;
    }
    REQUIRE(changes == 3);  // up, down, up
    REQUIRE(process.mode == StackMode::dwarf);
}

TEST_CASE("counts restart with each mode, and old ones fade") {
    Process process;
    process.run(100'000, 0, StackNeed::chain);
    process.run(200, 1000, StackNeed::long_copy);  // a library was loaded
    REQUIRE(process.follow());
    REQUIRE(process.mode == StackMode::dwarf);
    REQUIRE(process.policy.why(7).find("long one") != std::string::npos);
}

TEST_CASE("a program whose file cannot be read is unwound with its tables") {
    const StackChoice choice = first_choice("/nonexistent");
    CHECK(choice.mode == StackMode::dwarf);
    CHECK(choice.why == "its program file cannot be read");
}

TEST_CASE("a script has no unwind tables") {
    std::string path = std::filesystem::temp_directory_path() / "flamewire-script-XXXXXX";
    const UniqueFd script(::mkstemp(path.data()));
    const std::string_view text = "#!/bin/sh\nexec sleep 1\n";
    REQUIRE(::write(script.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size()));
    const StackChoice choice = first_choice(path);
    std::filesystem::remove(path);
    CHECK(choice.mode == StackMode::dwarf);
    CHECK(choice.why == "its program file is not an ELF file, for example a script");
}
