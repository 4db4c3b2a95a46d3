// The cost of unwinding alone: Flamewire and libunwind walk recorded stacks repeatedly from memory.
// Usage: bench_unwind PERF_DATA... [--smoke]. Prints one JSON line per figure. The samples of the last file in large
// libraries are also measured with a cold cache.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "../figure.h"
#include "base/clock.h"
#include "base/file.h"
#include "libunwind_walk.h"
#include "samples.h"
#include "unwind/walk/unwinder.h"

namespace {

using namespace flamewire;

using bench::fixed;
using bench::print;

constexpr std::size_t group = 32;  // stacks of 16 KiB: the content of a ring
constexpr std::uint64_t large_library = 90'000'000;
// Smaller with --smoke.
int passes = 5;
std::size_t most_stacks = SIZE_MAX, most_first_samples = 200;

struct Loaded {
    std::string name, bytes;
    perf_data::Recording recording;
    perf_data::Processes processes;
    struct Stack {
        perf_data::Start start;
        std::uint32_t pid = 0;
    };
    std::vector<Stack> stacks;
};

struct Cost {
    std::uint64_t ns = 0, frames = 0;
    Cost& operator+=(const Cost& other) {
        ns += other.ns;
        frames += other.frames;
        return *this;
    }
    [[nodiscard]] double per_frame() const {
        return static_cast<double>(ns) / static_cast<double>(std::max<std::uint64_t>(frames, 1));
    }
};

// The first pass warms up caches; returns the median of the others. With `fresh`, each group of stacks is walked twice
// and the second walk counts: a profiler reads bytes that the kernel has just written. Otherwise they come from memory.
template <class Walk>
Cost measure(const Loaded& loaded, bool fresh, Walk walk) {
    const std::span<const Loaded::Stack> stacks(loaded.stacks);
    std::vector<Cost> costs;
    for (int pass = -1; pass < passes; ++pass) {
        Cost cost;
        for (std::size_t at = 0; at < stacks.size(); at += group) {
            const auto some = stacks.subspan(at, std::min(group, stacks.size() - at));
            if (fresh)
                for (const Loaded::Stack& stack : some) walk(stack);
            const std::uint64_t before = process_cpu_ns();
            for (const Loaded::Stack& stack : some) cost.frames += walk(stack);
            cost.ns += process_cpu_ns() - before;
        }
        if (pass >= 0) costs.push_back(cost);
    }
    std::ranges::sort(costs, {}, &Cost::ns);
    return costs[costs.size() / 2];
}

Cost measure_ours(Loaded& loaded, bool fresh) {
    unwind::Unwinder unwinder(loaded.processes);
    std::vector<unwind::Frame> frames;
    return measure(loaded, fresh, [&](const Loaded::Stack& stack) {
        unwinder.walk(stack.start.registers, stack.start.stack, loaded.processes.space_of(stack.pid),
                      unwind::highest_max_depth, frames);
        return frames.size();
    });
}

Cost measure_libunwind(Loaded& loaded, bool fresh) {
    bench::LibunwindWalk peer(loaded.processes);
    std::vector<std::uint64_t> pcs;
    return measure(loaded, fresh, [&](const Loaded::Stack& stack) {
        peer.walk(stack.start, loaded.processes.space_of(stack.pid), pcs);
        return pcs.size();
    });
}

// The slowest of the first samples in a library of 100 MB, each with a new unwinder and an empty cache.
void first_samples(Loaded& loaded) {
    std::vector<double> times;
    std::string library;
    std::vector<unwind::Frame> frames;
    for (const Loaded::Stack& stack : loaded.stacks) {
        const auto place = loaded.processes.place_of(stack.pid, stack.start.registers.pc());
        std::error_code error;
        if (!place || times.size() == most_first_samples ||
            std::filesystem::file_size(place->path, error) < large_library || error)
            continue;
        library = place->path;
        unwind::Unwinder unwinder(loaded.processes);
        const std::uint64_t before = process_cpu_ns();
        unwinder.walk(stack.start.registers, stack.start.stack, loaded.processes.space_of(stack.pid),
                      unwind::highest_max_depth, frames);
        times.push_back(static_cast<double>(process_cpu_ns() - before) / 1e6);
    }
    if (times.empty()) return;
    std::ranges::sort(times);
    print({"unwinding: first sample in a 100 MB library, new unwinder, slowest of " + std::to_string(times.size()),
           times.back(), "ms", 5, library + "; median " + fixed(times[times.size() / 2], 2) + " ms"});
}

Result<std::unique_ptr<Loaded>> load(const std::string& path) {
    auto loaded = std::make_unique<Loaded>();
    loaded->name = std::filesystem::path(path).stem();
    loaded->bytes = TRY(read_file(path, std::size_t{4} << 30));
    loaded->recording = TRY(perf_data::read_recording(as_bytes_view(loaded->bytes)));
    perf_data::replay(loaded->recording, loaded->processes, [&](const perf_data::Sample& sample) {
        const auto start = perf_data::start_of(loaded->recording, sample);
        if (start && loaded->stacks.size() < most_stacks) loaded->stacks.push_back({*start, sample.pid});
    });
    if (loaded->stacks.empty()) return fail(ErrorCode::invalid, path + " has no samples with stack copies");
    return loaded;
}

}  // namespace

int main(int argc, char** argv) {
    if (bench::take_smoke(argc, argv)) {
        passes = 1;
        most_stacks = 100;
        most_first_samples = 1;
    }
    Cost ours, theirs, ours_from_memory, theirs_from_memory;
    for (int i = 1; i < argc; ++i) {
        Result<std::unique_ptr<Loaded>> loaded = load(argv[i]);
        if (!loaded) {
            fmt::print(stderr, "bench_unwind: {}\n", loaded.error().message);
            return 1;
        }
        const Cost by_us = measure_ours(**loaded, true), by_peer = measure_libunwind(**loaded, true);
        ours += by_us;
        theirs += by_peer;
        ours_from_memory += measure_ours(**loaded, false);
        theirs_from_memory += measure_libunwind(**loaded, false);
        const std::size_t stacks = (*loaded)->stacks.size();
        print({"unwinding: warm, per frame, " + (*loaded)->name,
               by_us.per_frame(),
               "ns",
               {},
               "libunwind " + fixed(by_peer.per_frame(), 0) + " ns; " + std::to_string(stacks) + " stacks, " +
                   fixed(static_cast<double>(by_us.frames) / static_cast<double>(stacks), 1) + " frames each"});
        if (i == argc - 1) first_samples(**loaded);
    }
    print({"unwinding: warm, per frame, all of the above", ours.per_frame(), "ns", 60,
           "libunwind, UNW_CACHE_GLOBAL: " + fixed(theirs.per_frame(), 0) + " ns"});
    print({"unwinding: warm, per frame: ratio to libunwind", ours.per_frame() / theirs.per_frame(), "x", 0.143, ""});
    print({"unwinding: warm, but stack bytes from memory, per frame",
           ours_from_memory.per_frame(),
           "ns",
           {},
           "libunwind " + fixed(theirs_from_memory.per_frame(), 0) + " ns"});
    return 0;
}
