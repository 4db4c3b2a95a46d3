#include "agent/pipeline/copy_budget.h"

#include <catch2/catch.hpp>

using namespace flamewire;
using namespace flamewire::agent;

namespace {

constexpr std::uint64_t ms = 1'000'000;
constexpr std::uint32_t maximum = 65'528, configured = 16'384, reduced = 4'096;

constexpr CopyBudget::Options whole_cpus{.adaptive = true, .whole_cpus = true, .configured_bytes = configured};
constexpr CopyBudget::Options threads{.adaptive = true, .whole_cpus = false, .configured_bytes = configured};
constexpr CopyBudget::Options fixed_mode{.adaptive = false, .whole_cpus = true, .configured_bytes = configured};

struct Load {
    unsigned samples = 0, switches = 0, lost = 0;
    unsigned truncated = 0;  // of the samples, unless copies have the maximum size
};

// Applies every change at once. All copies are full.
struct Recording {
    CopyBudget budget;
    std::uint64_t now_ns = 1'000 * ms;
    CopyBudget::Counts counts;
    explicit Recording(const CopyBudget::Options& options) { reset(options); }

    void reset(const CopyBudget::Options& options) {
        budget.reset(options);
        CHECK(budget.update(now_ns, counts) == budget.config());  // starts a window
    }

    void add_samples(const Load& load) {
        const CopyConfig copies = budget.config();
        for (unsigned i = 0; i < load.samples; ++i)
            budget.add_sample(false, budget.stack_bytes(), budget.stack_bytes() != 0);
        for (unsigned i = 0; i < load.switches; ++i)
            budget.add_sample(true, copies.at_switches ? budget.stack_bytes() : 0, copies.at_switches);
    }
    // Half a second of this load. Returns whether the configuration changed.
    bool run(const Load& load) {
        const CopyConfig copies = budget.config();
        add_samples(load);
        now_ns += 500 * ms;
        counts.lost_samples += load.lost;
        if (copies.size != CopySize::maximum) counts.truncated_stacks += load.truncated;
        const CopyConfig wanted = budget.update(now_ns, counts);
        if (wanted != copies) budget.apply(wanted, now_ns);
        return wanted != copies;
    }
    // Half seconds until the configuration changes; 100 if it does not.
    unsigned until_change(const Load& load) {
        unsigned windows = 1;
        while (windows < 100 && !run(load)) ++windows;
        return windows;
    }
    CopySize size() const { return budget.config().size; }
};

// The number of copies of this size that fills the budget in half a second.
constexpr unsigned full(std::uint32_t bytes) { return static_cast<unsigned>(max_copied_bytes / 2 / bytes); }

}  // namespace

TEST_CASE("within the budget, copies of whole CPUs keep the configured size") {
    Recording recording(whole_cpus);
    CHECK(recording.budget.stack_bytes() == configured);
    CHECK(recording.until_change({.samples = full(configured), .lost = 1}) == 100);
}

TEST_CASE("beyond the budget, copies shrink and then stop, and grow again after ten seconds with room") {
    Recording recording(whole_cpus);
    CHECK(recording.run({.samples = full(configured) + 1}));
    CHECK(recording.size() == CopySize::reduced);
    CHECK(recording.budget.stack_bytes() == reduced);
    CHECK(recording.until_change({.samples = full(reduced)}) == 100);
    CHECK(recording.run({.samples = full(reduced) + 1}));
    CHECK(recording.size() == CopySize::none);
    CHECK(recording.budget.stack_bytes() == 0);
    CHECK(recording.until_change({.samples = full(reduced) / 2 + 1}) == 100);
    CHECK(recording.until_change({.samples = full(reduced) / 2}) == 20);
    CHECK(recording.size() == CopySize::reduced);
    CHECK(recording.until_change({.samples = full(configured) / 2 + 1}) == 100);
    CHECK(recording.until_change({.samples = full(configured) / 2}) == 20);
    CHECK(recording.size() == CopySize::configured);
    CHECK(recording.until_change({.samples = full(configured) / 2}) == 100);
}

TEST_CASE("a configured size of 4 KiB is not reduced") {
    CopyBudget::Options options = whole_cpus;
    options.configured_bytes = reduced;
    Recording recording(options);
    CHECK(recording.run({.samples = full(reduced) + 1}));
    CHECK(recording.size() == CopySize::none);
    CHECK(recording.until_change({.samples = 10}) == 20);
    CHECK(recording.budget.stack_bytes() == reduced);
    CHECK(recording.until_change({.samples = 10}) == 100);
}

TEST_CASE("lasting losses shrink copies, a single one does not") {
    Recording recording(whole_cpus);
    const Load lossless{.samples = 1'000}, lossy{.samples = 1'000, .lost = 2};
    CHECK_FALSE(recording.run(lossy));
    CHECK_FALSE(recording.run(lossless));
    CHECK_FALSE(recording.run(lossy));
    CHECK(recording.run(lossy));
    CHECK(recording.size() == CopySize::reduced);
    CHECK(recording.budget.notices({}).at(0).text ==
          "2 samples were lost. From now on, the agent copies 4 KiB of each stack.");
    // Every sample is lost.
    CHECK(recording.until_change({.lost = 100}) == 2);
    CHECK(recording.size() == CopySize::none);
    CHECK(recording.until_change({.lost = 100}) == 100);
}

TEST_CASE("copies of whole CPUs start at the maximum if that fits the budget") {
    CopyBudget::Options options = whole_cpus;
    options.max_samples_per_second = max_copied_bytes / maximum;
    Recording fits(options);
    CHECK(fits.budget.stack_bytes() == maximum);
    CHECK(fits.until_change({.samples = full(maximum)}) == 100);
    options.max_samples_per_second += 1;
    CHECK(Recording(options).budget.stack_bytes() == configured);
    options.max_samples_per_second = 1;
    options.whole_cpus = false;
    CHECK(Recording(options).budget.stack_bytes() == configured);
    options.whole_cpus = true;
    options.adaptive = false;
    CHECK(Recording(options).budget.stack_bytes() == configured);
}

TEST_CASE("copies grow if stacks are truncated and half of the budget suffices") {
    const auto options = GENERATE(whole_cpus, threads);
    const unsigned fits = full(maximum) / 2;
    Recording recording(options);
    CHECK(recording.until_change({.samples = fits, .truncated = 0}) == 100);
    CHECK(recording.until_change({.samples = fits + 1, .truncated = fits}) == 100);
    CHECK(recording.run({.samples = fits, .truncated = fits}));
    CHECK(recording.size() == CopySize::maximum);
    CHECK(recording.until_change({.samples = full(maximum), .truncated = fits}) == 100);
    // Over budget: growing again takes ten seconds.
    CHECK(recording.run({.samples = full(maximum) + 1, .truncated = fits}));
    CHECK(recording.size() == CopySize::configured);
    CHECK(recording.until_change({.samples = fits, .truncated = fits}) == 20);
    CHECK(recording.size() == CopySize::maximum);
    // After losses at the maximum, copies never grow to it again.
    CHECK(recording.until_change({.samples = fits, .lost = fits}) == 2);
    CHECK(recording.size() == CopySize::configured);
    CHECK(recording.until_change({.samples = fits, .truncated = fits}) == 100);
    recording.reset(options);
    CHECK(recording.until_change({.samples = fits, .truncated = fits}) == 1);
}

TEST_CASE("copies do not grow for 0.5 % of truncated stacks") {
    Recording recording(threads);
    CHECK(recording.until_change({.samples = 200, .truncated = 1}) == 100);
    CHECK(recording.until_change({.samples = 100, .truncated = 1}) < 100);
    // Samples without a copy do not count.
    Recording without_switches(threads);
    CHECK(without_switches.until_change({.samples = 100, .switches = 10'000, .lost = 1'000}) == 1);
    CHECK(without_switches.until_change({.samples = 100, .switches = 10'000, .truncated = 1}) < 100);
    CHECK(without_switches.size() == CopySize::maximum);
}

TEST_CASE("for threads, losses omit the copies at context switches") {
    Recording recording(threads);
    CHECK(recording.until_change({.samples = full(configured), .switches = 10 * full(configured)}) == 100);
    const Load lossy{.samples = 100, .switches = 10'000, .lost = 1'000};
    CHECK(recording.run(lossy));
    CHECK(recording.budget.config() == CopyConfig{CopySize::configured, false});
    CHECK(recording.until_change(lossy) == 100);
    recording.reset(threads);
    CHECK(recording.budget.config() == CopyConfig{});
    CHECK(recording.until_change({.samples = 10'000, .lost = 1'000}) == 100);
}

TEST_CASE("a loss omits the copies at context switches first, even if others are most of the bytes") {
    Recording recording(whole_cpus);
    CHECK(recording.run({.samples = 1'000, .switches = 100, .lost = 2}));
    CHECK(recording.budget.config() == CopyConfig{CopySize::configured, false});
    // Without them, losses must last.
    CHECK_FALSE(recording.run({.samples = 1'000, .switches = 100, .lost = 2}));
    CHECK(recording.run({.samples = 1'000, .switches = 100, .lost = 2}));
    CHECK(recording.budget.config() == CopyConfig{CopySize::reduced, false});
}

TEST_CASE("a loss of 1 % omits the copies at context switches within a window") {
    const auto after = [](const Load& load, std::uint64_t lost) {
        Recording recording(threads);
        recording.add_samples(load);
        recording.budget.add_lost(lost);
        recording.counts.lost_samples += lost;
        recording.now_ns += ms / 2;
        const bool overwhelmed = recording.budget.overwhelmed();
        const CopyConfig wanted = recording.budget.update(recording.now_ns, recording.counts);
        CHECK((wanted != CopyConfig{}) == overwhelmed);
        return wanted;
    };
    CHECK(after({.samples = 100, .switches = 9'800}, 100) == CopyConfig{});
    CHECK(after({.samples = 100, .switches = 9'799}, 100) == CopyConfig{CopySize::configured, false});
    CHECK(after({.samples = 1, .switches = 1}, 99) == CopyConfig{});
    CHECK(after({.samples = 1, .switches = 1}, 100) == CopyConfig{CopySize::configured, false});
    CHECK(after({.samples = 2}, 100) == CopyConfig{});
}

TEST_CASE("copies at context switches begin again, once, after ten seconds with room") {
    Recording recording(threads);
    const Load busy{.samples = 1, .switches = full(configured) / 2};
    const Load calm{.samples = 1, .switches = full(configured) / 2 - 1};
    Load lossy = calm;
    lossy.lost = 1'000;
    CHECK(recording.run(lossy));
    CHECK(recording.until_change(busy) == 100);
    for (unsigned window = 0; window < 19; ++window) CHECK_FALSE(recording.run(calm));
    CHECK_FALSE(recording.run(lossy));
    CHECK(recording.until_change(calm) == 20);
    CHECK(recording.budget.config() == CopyConfig{});
    CHECK(recording.budget.notices({CopySize::configured, false}).at(0).text ==
          "From now on, the agent copies stacks at context switches again.");
    CHECK(recording.until_change(calm) == 100);
    CHECK(recording.run(lossy));
    CHECK(recording.until_change(calm) == 100);
    recording.reset(threads);
    CHECK(recording.run(lossy));
    CHECK(recording.until_change(calm) == 20);
}

TEST_CASE("the larger part of the bytes shrinks first") {
    Recording switches(whole_cpus);
    CHECK(switches.run({.samples = 100, .switches = full(configured)}));
    CHECK(switches.budget.config() == CopyConfig{CopySize::configured, false});
    CHECK(switches.until_change({.samples = 100, .switches = full(configured)}) == 100);
    CHECK(switches.run({.samples = full(configured) + 1, .switches = 100}));
    CHECK(switches.budget.config() == CopyConfig{CopySize::reduced, false});
    Recording samples(whole_cpus);
    CHECK(samples.run({.samples = full(configured), .switches = 100}));
    CHECK(samples.budget.config() == CopyConfig{CopySize::reduced, true});
}

TEST_CASE("without auto mode, only losses omit the copies at context switches") {
    Recording recording(fixed_mode);
    CHECK(recording.until_change({.samples = 4 * full(configured), .lost = 100, .truncated = 1'000}) == 100);
    CHECK(recording.until_change({.samples = 10, .switches = 4 * full(configured)}) == 100);
    CHECK(recording.run({.samples = 10, .switches = 100, .lost = 100}));
    CHECK(recording.budget.config() == CopyConfig{CopySize::configured, false});
}

TEST_CASE("configured rings fit eight samples") {
    CopyBudget::Options options = whole_cpus;
    options.max_samples_per_second = 1;
    for (const auto& [ring_bytes, stack_bytes] :
         {std::pair(8 * 65'528U, maximum), std::pair(8 * 65'528U - 1, 65'520U), std::pair(64U << 10, configured)}) {
        options.ring_bytes = ring_bytes;
        CHECK(Recording(options).budget.stack_bytes() == stack_bytes);
    }
}

TEST_CASE("notices describe the change and its cause") {
    Recording recording(whole_cpus);
    const auto text = [&](CopyConfig before) { return recording.budget.notices(before).at(0).text; };
    CHECK(recording.run({.samples = full(configured) + 1}));
    CHECK(text({}) == "134 MB of stacks were copied per second. From now on, the agent copies 4 KiB of each stack.");
    CHECK(recording.run({.samples = full(reduced) + 1}));
    CHECK(text({CopySize::reduced}) ==
          "134 MB of stacks were copied per second. From now on, stacks come from frame pointers.");
    CHECK(recording.until_change({.samples = 10}) == 20);
    CHECK(recording.until_change({.samples = 10}) == 20);
    CHECK(text({CopySize::reduced}) ==
          "0 MB of stacks were copied per second. From now on, the agent copies --stack-size bytes of each stack.");
    CHECK(recording.run({.samples = 10, .truncated = 10}));
    CHECK(recording.budget.notices({}).empty());
    CHECK(recording.run({.samples = full(maximum) + 1}));
    CHECK(text({CopySize::maximum}) ==
          "134 MB of stacks were copied per second. From now on, the agent copies --stack-size bytes of each stack.");
    Recording switching(threads);
    CHECK(switching.run({.samples = 10, .switches = 1'000, .lost = 70}));
    CHECK(switching.budget.notices({}).at(0).text ==
          "70 samples were lost. From now on, stacks of context switches come from frame pointers.");
    CHECK(switching.budget.notices({}).at(0).remedy == "use a lower --frequency or a smaller --stack-size");
}
