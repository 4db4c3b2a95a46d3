// Memory per row and time per query of a store with 1 M rows, 100,000 distinct stacks, 50 threads and 4 events
// (--smoke: a fiftieth of the rows and stacks). Prints one JSON object per line: {"figure", "value", "bar"}; bar may be
// null. Lower is always better.
#include <fmt/format.h>
#include <malloc.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <random>

#include "../figure.h"
#include "profile/formats/collapsed.h"
#include "profile/formats/json.h"
#include "profile/formats/svg.h"
#include "profile/query/query.h"
#include "synthetic_program.h"

namespace flamewire::bench {

namespace {

constexpr std::size_t rows_per_batch = 2'000;
constexpr std::uint64_t batch_ns = 250'000'000;
constexpr std::uint64_t start_ns = 1'000'000'000'000;

// Smaller with --smoke.
std::size_t row_count = 1'000'000, queries = 100;
ProgramShape shape;

void print(std::string_view figure, double value, double bar = 0) {
    bench::print(Figure{std::string(figure), value, "", bar == 0 ? std::nullopt : std::optional(bar), ""});
}

double heap_bytes() {
    const struct mallinfo2 info = ::mallinfo2();
    return static_cast<double>(info.uordblks) + static_cast<double>(info.hblkhd);
}

double milliseconds(const std::function<void()>& work) {
    const auto begin = std::chrono::steady_clock::now();
    work();
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
}

void symbolize(profile::Store& store, std::uint32_t version) {
    for (const profile::PendingModule& pending : store.take_pending())
        store.set_frames(pending, answer(pending, version));
}

// Each call of `work` gets a new filter: a random part of the time, and a random thread if `by_thread`.
void time_query(std::string_view name, const profile::Store& store, bool by_thread, double bar,
                const std::function<std::size_t(const profile::Filter&)>& work) {
    std::mt19937_64 random(42);
    std::vector<double> times;
    std::size_t answered = 0;
    const std::uint64_t span_ns = store.end_ns() - store.first_ns();
    for (std::size_t i = 0; i < queries; ++i) {
        profile::Filter filter;
        const std::uint64_t a = store.first_ns() + random() % span_ns;
        const std::uint64_t b = store.first_ns() + random() % span_ns;
        filter.start_ns = std::min(a, b);
        filter.end_ns = std::max(a, b);
        filter.event = 1 + static_cast<profile::EventId>(random() % 4);
        if (by_thread) filter.tids = {4242 + static_cast<std::uint32_t>(random() % 50)};
        times.push_back(milliseconds([&] { answered += work(filter); }));
    }
    std::ranges::sort(times);
    print(fmt::format("{}, median ms", name), times[queries / 2], bar);
    print(fmt::format("{}, p95 ms", name), times[queries * 95 / 100], bar);
    if (answered == 0) fmt::print(stderr, "{} returned nothing\n", name);
}

void run() {
    Program program(shape);
    print("distinct stacks, mean depth", program.mean_leaf_depth());
    print("address trie nodes", static_cast<double>(program.nodes()));
    print("locations", static_cast<double>(program.locations()));
    ::malloc_trim(0);
    const double heap_before = heap_bytes();
    profile::Store store({.max_rows = row_count + row_count / 8});

    double apply_ms = milliseconds([&] { (void)store.apply(program.tables()); });
    print("apply all tables, ms", apply_ms);
    apply_ms = 0;
    for (std::size_t i = 0; i < row_count / rows_per_batch; ++i) {
        const wire::Batch batch = program.rows(2 + i, start_ns + i * batch_ns, rows_per_batch);
        apply_ms += milliseconds([&] { (void)store.apply(batch); });
    }
    print("apply rows, ns per row", apply_ms * 1e6 / static_cast<double>(row_count));
    print("symbolize all locations, ms", milliseconds([&] { symbolize(store, 1); }));
    ::malloc_trim(0);
    print("store bytes per row, heap", (heap_bytes() - heap_before) / static_cast<double>(row_count), 64);
    print("store bytes per row, own count", static_cast<double>(store.memory_bytes()) / static_cast<double>(row_count),
          64);
    print("rows", static_cast<double>(store.row_count()));
    print("function trie nodes", static_cast<double>(profile::call_tree(store, {}).nodes.size()));

    using profile::Filter;
    time_query("call tree, random time range and thread", store, true, 30,
               [&](const Filter& filter) { return profile::call_tree(store, filter).nodes.size(); });
    time_query("call tree, random time range, all threads, all nodes", store, false, 0,
               [&](const Filter& filter) { return profile::call_tree(store, filter).nodes.size(); });
    time_query(
        "call tree, random time range, all threads, min share 0.1 %", store, false, 0, [&](const Filter& filter) {
            return profile::call_tree(store, filter, {.min_share = 0.001, .path = {}, .max_nodes = 0}).nodes.size();
        });
    time_query("functions, random time range, all threads", store, false, 0,
               [&](const Filter& filter) { return profile::functions(store, filter).size(); });
    time_query("thread summary, random time range", store, false, 0,
               [&](const Filter& filter) { return profile::thread_summary(store, filter).size(); });
    time_query("line heat, random time range", store, false, 0, [&](const Filter& filter) {
        return profile::line_heat(store, filter, "/src/program/part2/file40.cc").size() + 1;
    });
    time_query("histogram, random time range", store, false, 0,
               [&](const Filter& filter) { return profile::histogram(store, filter, 500).size(); });
    print("call tree, everything, ms", milliseconds([&] { (void)profile::call_tree(store, {}); }));
    print("collapsed, everything, ms", milliseconds([&] { (void)profile::collapsed(store, {}); }));
    print("json, everything, ms", milliseconds([&] { (void)profile::json(store, {}); }));
    print("svg, one event, ms", milliseconds([&] { (void)profile::svg(store, {.event = 1}); }));

    // A step of live symbolization: the locations of one module change.
    store.forget_frames(std::vector<profile::ModuleId>{3});
    std::vector<profile::PendingModule> pending = store.take_pending();
    print("new frames for one module, ms", milliseconds([&] { store.set_frames(pending[0], answer(pending[0], 2)); }));
    print("500,000 rows allowed instead of 1 M: coarsening, ms", [&] {
        profile::Store small({.max_rows = row_count / 2});
        (void)small.apply(program.tables());
        double most_ms = 0;
        for (std::size_t i = 0; i < row_count / rows_per_batch; ++i) {
            const wire::Batch batch = program.rows(2 + i, start_ns + i * batch_ns, rows_per_batch);
            most_ms = std::max(most_ms, milliseconds([&] { (void)small.apply(batch); }));
        }
        return most_ms;
    }());
}

}  // namespace

}  // namespace flamewire::bench

int main(int argc, char** argv) {
    using namespace flamewire::bench;
    if (take_smoke(argc, argv)) {
        row_count = 20'000;
        queries = 4;
        shape.stacks = 2'000;
    }
    run();
}
