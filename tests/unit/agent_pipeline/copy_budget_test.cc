#include "agent/pipeline/copy_budget.h"

#include <catch2/catch.hpp>

using namespace flamewire::agent;

namespace {

constexpr std::uint64_t ms = 1'000'000;
constexpr std::uint32_t longest = 65'528, usual = 16'384, shortened = 4'096;

constexpr CopyBudget::Plan of_cpus{.adapts = true, .of_all = true, .usual_bytes = usual, .longest_bytes = longest};
constexpr CopyBudget::Plan of_threads{.adapts = true, .of_all = false, .usual_bytes = usual, .longest_bytes = longest};
constexpr CopyBudget::Plan as_asked{.adapts = false, .of_all = true, .usual_bytes = usual, .longest_bytes = longest};

struct Load {
    unsigned samples = 0, switches = 0, lost = 0;
    unsigned cut = 0;  // of the samples: deeper than any copy but the longest
};

// Copies as a recorder makes them, each of them full.
struct Recording {
    CopyBudget budget;
    std::uint64_t now_ns = 1'000 * ms;
    CopyBudget::Counts counts;
    explicit Recording(const CopyBudget::Plan& plan) { begin(plan); }

    void begin(const CopyBudget::Plan& plan) {
        budget.begin(plan);
        CHECK_FALSE(budget.change(now_ns, counts));  // a window begins
    }

    // Half a second of it; true when copies changed.
    bool run(const Load& load) {
        const StackCopies copies = budget.copies();
        for (unsigned i = 0; i < load.samples; ++i) budget.note(false, budget.stack_bytes(), budget.stack_bytes() != 0);
        for (unsigned i = 0; i < load.switches; ++i)
            budget.note(true, copies.at_switches ? budget.stack_bytes() : 0, copies.at_switches);
        now_ns += 500 * ms;
        counts.lost += load.lost;
        if (copies.size != CopySize::longest) counts.cut += load.cut;
        const auto wanted = budget.change(now_ns, counts);
        if (wanted) budget.chose(*wanted, now_ns);
        return wanted.has_value();
    }
    // After how many half seconds copies change; 100 if they do not.
    unsigned until_change(const Load& load) {
        unsigned windows = 1;
        while (windows < 100 && !run(load)) ++windows;
        return windows;
    }
    CopySize size() const { return budget.copies().size; }
};

// So many copies of that size fill the budget in half a second.
constexpr unsigned full(std::uint32_t bytes) { return static_cast<unsigned>(most_copied_bytes / 2 / bytes); }

}  // namespace

TEST_CASE("copies of whole CPUs stay as they are within the budget") {
    Recording recording(of_cpus);
    CHECK(recording.budget.stack_bytes() == usual);
    CHECK(recording.until_change({.samples = full(usual), .lost = 1}) == 100);
    CHECK(recording.budget.bytes_per_second() == std::uint64_t{full(usual)} * 2 * usual);
}

TEST_CASE("beyond the budget, copies become short, then none are taken, and later more again") {
    Recording recording(of_cpus);
    CHECK(recording.run({.samples = full(usual) + 1}));
    CHECK(recording.size() == CopySize::shortened);
    CHECK(recording.budget.stack_bytes() == shortened);
    CHECK(recording.until_change({.samples = full(shortened)}) == 100);
    CHECK(recording.run({.samples = full(shortened) + 1}));
    CHECK(recording.size() == CopySize::none);
    CHECK(recording.budget.stack_bytes() == 0);
    // Larger copies come back when they have taken half of the budget at most for ten seconds.
    CHECK(recording.until_change({.samples = full(shortened) / 2 + 1}) == 100);
    CHECK(recording.until_change({.samples = full(shortened) / 2}) == 20);
    CHECK(recording.size() == CopySize::shortened);
    CHECK(recording.until_change({.samples = full(usual) / 2 + 1}) == 100);
    CHECK(recording.until_change({.samples = full(usual) / 2}) == 20);
    CHECK(recording.size() == CopySize::usual);
    CHECK(recording.until_change({.samples = full(usual) / 2}) == 100);
}

TEST_CASE("a copy that is short already is not shortened") {
    CopyBudget::Plan plan = of_cpus;
    plan.usual_bytes = shortened;
    Recording recording(plan);
    CHECK(recording.run({.samples = full(shortened) + 1}));
    CHECK(recording.size() == CopySize::none);
    CHECK(recording.until_change({.samples = 10}) == 20);
    CHECK(recording.budget.stack_bytes() == shortened);
    CHECK(recording.until_change({.samples = 10}) == 100);
}

TEST_CASE("losses shrink copies when they last, not once") {
    Recording recording(of_cpus);
    const Load lossless{.samples = 1'000}, lossy{.samples = 1'000, .lost = 2};
    CHECK_FALSE(recording.run(lossy));
    CHECK_FALSE(recording.run(lossless));
    CHECK_FALSE(recording.run(lossy));
    CHECK(recording.run(lossy));
    CHECK(recording.size() == CopySize::shortened);
    CHECK(recording.budget.lost() == 2);
    // No room for a single one.
    CHECK(recording.until_change({.lost = 100}) == 2);
    CHECK(recording.size() == CopySize::none);
    CHECK(recording.until_change({.lost = 100}) == 100);
}

TEST_CASE("copies of whole CPUs begin as long as they can be where that is sure to fit") {
    CopyBudget::Plan plan = of_cpus;
    plan.samples_per_s = most_copied_bytes / longest;
    Recording fits(plan);
    CHECK(fits.budget.stack_bytes() == longest);
    CHECK(fits.until_change({.samples = full(longest)}) == 100);
    plan.samples_per_s += 1;
    CHECK(Recording(plan).budget.stack_bytes() == usual);
    plan.samples_per_s = 1;
    plan.of_all = false;
    CHECK(Recording(plan).budget.stack_bytes() == usual);
    plan.of_all = true;
    plan.adapts = false;
    CHECK(Recording(plan).budget.stack_bytes() == usual);
}

TEST_CASE("copies grow where stacks are deeper, and half of the budget is enough") {
    const auto plan = GENERATE(of_cpus, of_threads);
    const unsigned fits = full(longest) / 2;
    Recording recording(plan);
    CHECK(recording.until_change({.samples = fits, .cut = 0}) == 100);
    CHECK(recording.until_change({.samples = fits + 1, .cut = fits}) == 100);
    CHECK(recording.run({.samples = fits, .cut = fits}));
    CHECK(recording.size() == CopySize::longest);
    CHECK(recording.until_change({.samples = full(longest), .cut = fits}) == 100);
    // More is too much, and it takes ten seconds until it is tried again.
    CHECK(recording.run({.samples = full(longest) + 1, .cut = fits}));
    CHECK(recording.size() == CopySize::usual);
    CHECK(recording.until_change({.samples = fits, .cut = fits}) == 20);
    CHECK(recording.size() == CopySize::longest);
    // After losses it is not.
    CHECK(recording.until_change({.samples = fits, .lost = fits}) == 2);
    CHECK(recording.size() == CopySize::usual);
    CHECK(recording.until_change({.samples = fits, .cut = fits}) == 100);
    // Another choice of events begins anew.
    recording.begin(plan);
    CHECK(recording.until_change({.samples = fits, .cut = fits}) == 1);
}

TEST_CASE("a few deep stacks among many are no reason to copy more of all") {
    Recording recording(of_threads);
    CHECK(recording.until_change({.samples = 200, .cut = 1}) == 100);
    CHECK(recording.until_change({.samples = 100, .cut = 1}) < 100);
    // What has no copy says nothing of how long copies should be.
    Recording without_switches(of_threads);
    CHECK(without_switches.until_change({.samples = 100, .switches = 10'000, .lost = 1'000}) == 2);
    CHECK(without_switches.until_change({.samples = 100, .switches = 10'000, .cut = 1}) < 100);
    CHECK(without_switches.size() == CopySize::longest);
}

TEST_CASE("of threads, only the copies at switches are left out, and only when samples are lost") {
    Recording recording(of_threads);
    CHECK(recording.until_change({.samples = full(usual), .switches = 10 * full(usual)}) == 100);
    const Load lossy{.samples = 100, .switches = 10'000, .lost = 1'000};
    CHECK(recording.until_change(lossy) == 2);
    CHECK(recording.budget.copies() == StackCopies{CopySize::usual, false});
    CHECK(recording.until_change(lossy) == 100);
    recording.begin(of_threads);
    CHECK(recording.budget.copies() == StackCopies{});
    CHECK(recording.until_change({.samples = 10'000, .lost = 1'000}) == 100);
}

TEST_CASE("what fills the budget goes first") {
    Recording switches(of_cpus);
    CHECK(switches.run({.samples = 100, .switches = full(usual)}));
    CHECK(switches.budget.copies() == StackCopies{CopySize::usual, false});
    CHECK(switches.until_change({.samples = 100, .switches = full(usual)}) == 100);
    CHECK(switches.run({.samples = full(usual) + 1, .switches = 100}));
    CHECK(switches.budget.copies() == StackCopies{CopySize::shortened, false});
    Recording samples(of_cpus);
    CHECK(samples.run({.samples = full(usual), .switches = 100}));
    CHECK(samples.budget.copies() == StackCopies{CopySize::shortened, true});
}

TEST_CASE("what a person chose is kept, but for the copies at switches that cost samples") {
    Recording recording(as_asked);
    CHECK(recording.until_change({.samples = 4 * full(usual), .lost = 100, .cut = 1'000}) == 100);
    CHECK(recording.until_change({.samples = 10, .switches = 4 * full(usual)}) == 100);
    CHECK(recording.until_change({.samples = 10, .switches = 100, .lost = 100}) == 2);
    CHECK(recording.budget.copies() == StackCopies{CopySize::usual, false});
}
