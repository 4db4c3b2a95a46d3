#include "synthetic_program.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <unordered_map>

namespace flamewire::bench {

namespace {

constexpr std::uint32_t leaf_addresses = 3;

}  // namespace

Program::Program(const ProgramShape& shape) : shape_(shape), random_(shape.seed) {
    tables_.recording_id = {1};
    tables_.recording = wire::Recording{};
    tables_.seq = 1;
    const auto string = [&](std::string text) {
        tables_.strings.push_back(std::move(text));
        return static_cast<wire::Id>(tables_.strings.size());
    };
    for (std::size_t i = 0; i < shape.modules; ++i)
        tables_.modules.push_back({wire::ModuleKind::file, string(fmt::format("/usr/lib/libmodule{}.so", i)),
                                   fmt::format("build-id-{:011}", i), 0, 0, 0, 0});
    wire::Process process{.pid = 4242, .start_time_ns = 1, .comm = string("program")};
    tables_.processes.push_back(process);
    for (std::uint32_t i = 0; i < shape.threads; ++i)
        tables_.threads.push_back({1, 4242 + i, string(fmt::format("worker-{}", i))});
    for (std::uint32_t i = 0; i < shape.events; ++i)
        tables_.events.push_back({string(fmt::format("event-{}", i)), string("events"), 999, 1});
    make_call_graph();
    make_stacks();
}

void Program::make_call_graph() {
    sites_.resize(shape_.functions);
    leaf_locations_.resize(shape_.functions);
    const auto location = [&](std::size_t function, std::uint64_t offset, std::uint32_t flags) {
        tables_.locations.push_back({static_cast<wire::Id>(1 + function % shape_.modules),
                                     0x1000 + function * function_bytes + offset, flags, 0, 0, 0});
        return static_cast<wire::Id>(tables_.locations.size());
    };
    for (std::size_t function = 0; function < shape_.functions; ++function) {
        leaf_locations_[function] = location(function, 1, 0);
        for (std::uint32_t i = 1; i < leaf_addresses; ++i) location(function, 1 + 7 * i, 0);
        // Functions mostly call nearby functions with higher numbers. Some call library functions at the end.
        const std::size_t count = 2 + random_() % 3;
        for (std::size_t i = 0; i < count; ++i) {
            const std::size_t distance = 1 + random_() % (shape_.functions / 24);
            const std::size_t callee = std::min(function + distance, shape_.functions - 1 - random_() % 50);
            sites_[function].push_back({location(function, 64 + 8 * i, wire::location_flag::return_address),
                                        static_cast<std::uint32_t>(callee)});
        }
    }
}

wire::Id Program::stack_child(wire::Id parent, wire::Id location) {
    const auto [entry, added] = children_.try_emplace((static_cast<std::uint64_t>(parent) << 32) | location, 0);
    if (added) {
        tables_.stacks.push_back({parent, location});
        depth_.push_back(depth_[parent] + 1);
        entry->second = static_cast<wire::Id>(tables_.stacks.size());
    }
    return entry->second;
}

void Program::make_stacks() {
    std::vector<std::uint8_t> is_leaf;
    while (leaves_.size() < shape_.stacks) {
        // Two of three calls go through the first call site, so stacks share hot paths.
        std::size_t function = random_() % 8;
        wire::Id stack = 0;
        const std::size_t depth = shape_.mean_depth - 6 + random_() % 13;
        for (std::size_t i = 1; i < depth; ++i) {
            const std::vector<Site>& sites = sites_[function];
            const Site& site = sites[random_() % 3 != 0 ? 0 : random_() % sites.size()];
            stack = stack_child(stack, site.location);
            function = site.callee;
        }
        stack = stack_child(stack, leaf_locations_[function] + static_cast<wire::Id>(random_() % leaf_addresses));
        is_leaf.resize(tables_.stacks.size() + 1);
        if (is_leaf[stack] == 0) leaves_.push_back(stack);
        is_leaf[stack] = 1;
    }
}

double Program::mean_leaf_depth() const {
    double sum = 0;
    for (const wire::Id leaf : leaves_) sum += depth_[leaf];
    return sum / static_cast<double>(leaves_.size());
}

wire::Batch Program::rows(std::uint64_t seq, std::uint64_t start_ns, std::size_t rows, std::uint64_t span_ns) {
    wire::Batch batch;
    batch.recording_id = tables_.recording_id;
    batch.seq = seq;
    for (std::size_t i = 0; i < rows; ++i) {
        wire::Row row;
        row.bucket = start_ns / batch.bucket_ns + random_() % (span_ns / batch.bucket_ns);
        row.event = 1 + static_cast<wire::Id>(random_() % shape_.events);
        row.thread = 1 + static_cast<wire::Id>(random_() % shape_.threads);
        row.cpu = static_cast<std::uint32_t>(random_() % shape_.cpus);
        // A power law: few stacks are hot. In every third batch all stacks are equally likely.
        const double u = static_cast<double>(random_() >> 11) / 9007199254740992.0;
        const auto rank = static_cast<std::size_t>(std::pow(u, 3) * static_cast<double>(leaves_.size()));
        row.stack = leaves_[seq * 7919 % 3 == 0 ? random_() % leaves_.size() : rank];
        row.count = 1;
        row.weight = 1'000'000 + random_() % 4096;
        batch.rows.push_back(row);
    }
    std::ranges::sort(batch.rows, {}, [](const wire::Row& row) {
        return std::tuple(row.event, row.thread, row.cpu, row.bucket, row.stack);
    });
    return batch;
}

symbol::Resolved answer(const profile::PendingModule& pending, std::uint32_t version) {
    symbol::Resolved resolved;
    resolved.strings.emplace_back();
    std::unordered_map<std::string, std::uint32_t> known;
    const auto string = [&](std::string text) {
        const auto [entry, added] = known.try_emplace(text, static_cast<std::uint32_t>(resolved.strings.size()));
        if (added) resolved.strings.push_back(std::move(text));
        return entry->second;
    };
    resolved.first.push_back(0);
    for (const CodeAddress& address : pending.addresses) {
        const std::uint64_t function = (address.value - 0x1000) / function_bytes;
        const auto line = static_cast<std::uint32_t>(address.value % function_bytes);
        const std::uint32_t file = string(fmt::format("/src/program/part{}/file{}.cc", function / 300, function / 20));
        if ((address.value / 8 + function) % 3 == 0)
            resolved.frames.push_back(
                {string(fmt::format("std::vector<part::Item{}>::operator[]", function % 97)), file, line, true});
        resolved.frames.push_back({string(fmt::format("part{}::Component{}::method_{}_{}(int, std::string const&)",
                                                      function / 300, function / 20, function, version)),
                                   file, line + 1, false});
        resolved.first.push_back(static_cast<std::uint32_t>(resolved.frames.size()));
    }
    return resolved;
}

}  // namespace flamewire::bench
