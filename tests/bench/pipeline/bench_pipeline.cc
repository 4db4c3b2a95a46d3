// The cost of a sample from the bytes in the ring to the row: decoding, then adding it with a known chain (warm) or a
// new chain (cold). The shape is that of a real profile: 2,000 distinct stacks of 25 frames in 4 threads. Prints one
// JSON line per figure.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <random>
#include <vector>

#include "../figure.h"
#include "agent/perf/decode.h"
#include "agent/pipeline/folder.h"
#include "agent/process/process_table.h"
#include "base/clock.h"

using namespace flamewire;
using namespace flamewire::agent;

namespace {

constexpr std::size_t stacks = 2000;
constexpr std::size_t frames = 25;
constexpr std::uint64_t samples_per_batch = 500;  // 2,000 Hz in 250 ms

// Chains like those of a program: a common root, and branches toward the leaf. The addresses are in this program.
std::vector<std::vector<std::uint64_t>> make_chains(std::uint64_t text) {
    std::mt19937_64 random(1);
    std::vector<std::vector<std::uint64_t>> chains;
    for (std::size_t i = 0; i < stacks; ++i) {
        std::vector<std::uint64_t> chain(frames + 1);
        chain[0] = static_cast<std::uint64_t>(-512);  // PERF_CONTEXT_USER
        for (std::size_t depth = 0; depth < frames; ++depth) {
            const std::uint64_t choices = 1 + depth * depth / 3;
            chain[frames - depth] = text + depth * 64 + (random() % choices) * 4;
        }
        chains.push_back(std::move(chain));
    }
    return chains;
}

// Adds all chains once per round, and closes a batch as often as an agent does. Returns ns per sample, with closing.
double run(Folder& folder, const std::vector<std::vector<std::uint64_t>>& chains, std::uint32_t pid, int rounds,
           std::uint64_t& now) {
    SampleRecord sample;
    sample.pid = pid;
    sample.cpu_mode = perf::CpuMode::user;
    std::uint64_t count = 0;
    const std::uint64_t began = process_cpu_ns();
    for (int round = 0; round < rounds; ++round)
        for (const auto& chain : chains) {
            sample.tid = pid + static_cast<std::uint32_t>(count % 4);
            sample.cpu = static_cast<std::uint32_t>(count % 2);
            sample.time_ns = now += 500'000;
            sample.period = 1'000'000;
            sample.callchain = chain;
            folder.add_sample(sample, 0);
            if (++count % samples_per_batch == 0) (void)folder.close_batch();
        }
    return static_cast<double>(process_cpu_ns() - began) / static_cast<double>(count);
}

// Decodes a sample without registers and stack. Returns ns per record.
double decode(const std::vector<std::uint64_t>& chain, int count) {
    // The header, id, ip, pid and tid, time, cpu, period, and the chain with its length.
    std::vector<std::uint64_t> words{0,     77, 0x401000,  100 | std::uint64_t{101} << 32,
                                     5'000, 3,  1'000'000, chain.size()};
    words.insert(words.end(), chain.begin(), chain.end());
    constexpr std::uint64_t sample = 9, user = 2;
    words[0] = sample | user << 32 | words.size() * 8 << 48;
    const Bytes bytes = std::as_bytes(std::span(words));
    Record record;
    perf::Origin origin;
    std::uint64_t decoded = 0;
    const std::uint64_t began = process_cpu_ns();
    for (int i = 0; i < count; ++i)
        decoded += decode_record(bytes, {}, record, origin) == perf::Decoded::ok ? origin.id / 77 : 0;
    return static_cast<double>(process_cpu_ns() - began) / static_cast<double>(decoded);
}

}  // namespace

int main(int argc, char** argv) {
    const bool smoke = bench::take_smoke(argc, argv);
    ProcessTable table;
    const auto pid = static_cast<std::uint32_t>(::getpid());
    const std::uint64_t attach_began = process_cpu_ns();
    table.attach(pid);
    bench::print({"attach_us", static_cast<double>(process_cpu_ns() - attach_began) / 1000, "", {}, ""});
    FolderOptions options;
    options.events = {{0, 0, 999, 0}};
    options.event_names = {"cycles"};
    options.event_units = {"cycles"};
    Folder folder(options, table);
    const auto chains = make_chains(reinterpret_cast<std::uintptr_t>(&make_chains) & ~std::uint64_t{0xfff});
    std::uint64_t now = monotonic_ns();
    std::vector<double> records;
    for (int i = 0; i < (smoke ? 1 : 9); ++i) records.push_back(decode(chains.front(), smoke ? 1'000 : 1'000'000));
    std::sort(records.begin(), records.end());
    bench::print({"decode_ns", records[records.size() / 2], "", {}, ""});
    bench::print({"add_sample_cold_ns", run(folder, chains, pid, 1, now), "", {}, ""});
    std::vector<double> warm;
    for (int i = 0; i < (smoke ? 1 : 9); ++i) warm.push_back(run(folder, chains, pid, smoke ? 1 : 50, now));
    std::sort(warm.begin(), warm.end());
    bench::print({"add_sample_warm_ns", warm[warm.size() / 2], "", 1000, ""});
    return 0;
}
