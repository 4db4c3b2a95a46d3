// Batches of a synthetic program with the shape of real ones: a call graph with shared hot paths, several call sites
// per function, inlined frames and several threads. The same seed gives the same batches.
#pragma once

#include <cstdint>
#include <random>
#include <unordered_map>
#include <vector>

#include "profile/store/store.h"
#include "wire/batch.h"

namespace flamewire::bench {

inline constexpr std::uint32_t function_bytes = 256;  // of .text

struct ProgramShape {
    std::size_t functions = 6'000;
    std::size_t modules = 12;
    std::size_t stacks = 100'000;  // distinct stacks of rows
    std::uint32_t threads = 50, events = 4, cpus = 8;
    std::size_t mean_depth = 18;
    std::uint64_t seed = 1;
};

class Program {
public:
    explicit Program(const ProgramShape& shape);

    // The first batch: all tables, no rows.
    [[nodiscard]] const wire::Batch& tables() const { return tables_; }
    // A batch of `rows` rows in the `span_ns` after start_ns.
    wire::Batch rows(std::uint64_t seq, std::uint64_t start_ns, std::size_t rows, std::uint64_t span_ns = 250'000'000);
    [[nodiscard]] std::size_t nodes() const { return tables_.stacks.size(); }
    [[nodiscard]] std::size_t locations() const { return tables_.locations.size(); }
    [[nodiscard]] double mean_leaf_depth() const;

private:
    struct Site {
        std::uint32_t location = 0, callee = 0;
    };
    void make_call_graph();
    void make_stacks();
    wire::Id stack_child(wire::Id parent, wire::Id location);

    ProgramShape shape_;
    std::mt19937_64 random_;
    wire::Batch tables_;
    std::vector<std::vector<Site>> sites_;       // by function
    std::vector<std::uint32_t> leaf_locations_;  // the first of three leaf addresses of each function
    std::vector<wire::Id> leaves_;
    std::vector<std::uint32_t> depth_{0};
    std::unordered_map<std::uint64_t, wire::Id> children_;  // (parent, location) -> stack
};

// The answer of a symbolizer: a third of the addresses have an inlined frame, and names are as long as C++ names.
symbol::Resolved answer(const profile::PendingModule& pending, std::uint32_t version);

}  // namespace flamewire::bench
