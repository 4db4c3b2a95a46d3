// The size of a recording on the wire: a generated workload of 2 threads at 999 Hz for 10 s, with more than 2,000
// distinct stacks of mean depth 15 or more, in batches of 250 ms and buckets of 10 ms. Everything counts: tables, agent
// state, frame headers.
#include <catch2/catch.hpp>

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "wire/batch.h"
#include "wire/frame.h"

using namespace flamewire;
using namespace flamewire::wire;

namespace {

struct Function {
    Id module = 0;
    std::uint64_t base = 0;
    std::vector<std::uint64_t> call_sites, hot;
};
struct Frame1 {
    Id module = 0;
    std::uint64_t address = 0;
    std::uint32_t flags = 0;
    auto operator<=>(const Frame1&) const = default;
};

// A program: functions of four modules, and call paths that branch off from each other.
struct Program {
    std::mt19937_64 random{1};
    std::vector<Function> functions;
    std::vector<std::vector<std::size_t>> paths;  // indices of functions
    std::map<std::pair<std::size_t, std::size_t>, std::uint64_t> sites;

    Program() {
        const std::uint64_t text_bytes[] = {0, 220'000, 1'400'000, 1'100'000, 60'000};
        for (int i = 0; i < 300; ++i) {
            const std::uint64_t draw = random() % 100;
            Function function;
            function.module = draw < 70 ? 1 : draw < 85 ? 2 : draw < 96 ? 3 : 4;
            function.base = 0x1000 + random() % text_bytes[function.module] / 16 * 16;
            for (int k = 0; k < 4; ++k) function.call_sites.push_back(function.base + 9 + random() % 500);
            for (int k = 0; k < 6; ++k) function.hot.push_back(function.base + random() % 300);
            functions.push_back(function);
        }
        while (paths.size() < 420) {
            std::vector<std::size_t> path;
            if (!paths.empty()) {
                path = paths[random() % paths.size()];
                path.resize(2 + random() % (path.size() - 2));
            }
            const std::size_t depth = 10 + random() % 14;
            while (path.size() < depth) path.push_back(random() % functions.size());
            paths.push_back(path);
        }
    }

    // Outermost first. The leaf is one of the hot addresses of the last function, with the first ones more often.
    std::vector<Frame1> sample() {
        const auto& path = paths[random() % paths.size()];
        std::vector<Frame1> stack;
        for (std::size_t i = 0; i < path.size(); ++i) {
            const Function& function = functions[path[i]];
            if (i + 1 == path.size())
                stack.push_back({function.module, function.hot[std::min(random() % 6, random() % 6)], 0});
            else
                stack.push_back({function.module, function.call_sites[path[i + 1] % 4], location_flag::return_address});
        }
        return stack;
    }
};

// A minimal version of the folder: ids in order of first appearance.
struct TestFolder {
    std::map<Frame1, Id> locations;
    std::map<std::pair<Id, Id>, Id> nodes;
    Id next_location = 1, next_node = 1;

    Id fold(const std::vector<Frame1>& stack, Batch& batch) {
        Id node = 0;
        for (const Frame1& frame : stack) {
            const auto [location, new_location] = locations.try_emplace(frame, next_location);
            if (new_location) {
                ++next_location;
                batch.locations.push_back({frame.module, frame.address, frame.flags, 0, 0, 0});
            }
            const auto [child, new_child] = nodes.try_emplace({node, location->second}, next_node);
            if (new_child) {
                ++next_node;
                batch.stacks.push_back({node, location->second});
            }
            node = child->second;
        }
        return node;
    }
};

void add_first_tables(Batch& batch) {
    batch.recording = Recording{.target = "pid 4242 (demo)",
                                .pids = {4242},
                                .host = "board",
                                .arch = "x86_64",
                                .kernel_release = "6.1.0-18-amd64",
                                .agent_version = "0.1.0",
                                .boot_id = "0f6c0dc5-2f6a-4c5c-9d5c-1f6a5b7a1c2d",
                                .frequency_hz = 999,
                                .period = 0,
                                .effective_frequency_hz = 999,
                                .unwind = "fp",
                                .kernel = true,
                                .interval_ms = 250,
                                .start_ns = 123'456'789'012,
                                .page_size = 4096,
                                .cpus = 2};
    batch.strings = {"/home/user/demo",
                     "/usr/lib/x86_64-linux-gnu/libc.so.6",
                     "/usr/lib/x86_64-linux-gnu/libstdc++.so.6.0.30",
                     "/usr/lib/x86_64-linux-gnu/libm.so.6",
                     "demo",
                     "./demo --threads 2",
                     "cpu-clock",
                     "ns",
                     "worker"};
    for (Id i = 1; i <= 4; ++i) {
        Module module;
        module.path = i;
        module.build_id = std::string(20, static_cast<char>(37 * i));
        batch.modules.push_back(module);
    }
    batch.processes = {{4242, 0, 1, 5'000'000'000, 0, 5, 1, 6, 0, 0}};
    batch.threads = {{1, 4242, 5}, {1, 4243, 9}};
    batch.events = {{7, 8, 999, 1'001'001}};
}

}  // namespace

TEST_CASE("at most 3 bytes per sample with more than 2,000 distinct deep stacks") {
    Program program;
    TestFolder folder;
    const EventPeriods periods{0, 1'001'001};
    std::set<Id> distinct;
    std::uint64_t samples = 0, depth = 0, wire_bytes = 0;
    std::uint32_t cpu_of[2] = {0, 1};
    std::mt19937_64 random(2);
    for (std::uint64_t number = 0; number < 40; ++number) {
        Batch batch;
        for (std::uint8_t& byte : batch.recording_id)
            byte = static_cast<std::uint8_t>(17 * (&byte - batch.recording_id.data()) + 3);
        batch.seq = number + 1;
        batch.monotonic_ns = 123'456'789'012 + number * 250'117'423;
        batch.realtime_ns = 1'763'674'000'123'456'789 + static_cast<std::int64_t>(number) * 250'117'501;
        if (number == 0) add_first_tables(batch);
        batch.location_base = folder.next_location;
        batch.stack_base = folder.next_node;
        for (std::uint64_t i = 0; i < 250; ++i) {
            for (std::uint32_t thread = 0; thread < 2; ++thread) {
                if (random() % 400 == 0) cpu_of[thread] ^= 1;
                const auto stack = program.sample();
                const Id node = folder.fold(stack, batch);
                const std::uint64_t time_ns = batch.monotonic_ns + i * 1'001'001;
                batch.rows.push_back({time_ns / default_bucket_ns, 1, thread + 1, cpu_of[thread], node, 1, 1'001'001});
                distinct.insert(node);
                depth += stack.size();
                ++samples;
            }
        }
        batch.agent = AgentStats{20'000'000 + number * 700'123, 6'123'520, 1'056'768, samples, 0, 0, 0, 2'345, 0};
        // Once per second, with the counts until then.
        if (number % 4 == 3)
            batch.unwinds = {{.process = 1,
                              .mode = StackMode::dwarf,
                              .why = "61 % of the code that was sampled keeps no frame pointer",
                              .samples = samples,
                              .whole = samples - 20,
                              .joined = 12,
                              .truncated = 5,
                              .open_end = 0,
                              .stopped = 3,
                              .frames = depth,
                              .stack_bytes = samples * 5'300}};
        const Frame frame = batch_frame(encode(batch, periods));
        wire_bytes += header_bytes + frame.payload.size();
    }
    const double per_sample = static_cast<double>(wire_bytes) / static_cast<double>(samples);
    CAPTURE(samples, distinct.size(), folder.locations.size(), folder.nodes.size(), wire_bytes, per_sample);
    CHECK(distinct.size() >= 2000);
    CHECK(depth >= 15 * samples);
    CHECK(per_sample <= 3.0);
    INFO("bytes per sample: " << per_sample);
    SUCCEED();
}
