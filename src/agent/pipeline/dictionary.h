// The tables of one epoch: strings, modules, locations, stack nodes, processes, threads, events. Each entry gets the
// next id of its table and is sent once, with the next batch.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "agent/process/process_table.h"
#include "base/id_table.h"
#include "wire/batch.h"

namespace flamewire::agent {

// A stack without ids, so that it outlives an epoch. Outermost frame first.
struct SavedFrame {
    ModuleHandle module = 0;
    std::uint64_t address = 0;
    std::uint32_t flags = 0, line = 0;
    std::string name, file;  // of a name location
};
using SavedStack = std::vector<SavedFrame>;

class Dictionary {
public:
    explicit Dictionary(ProcessTable& processes) : processes_(processes) {}

    wire::Id string(std::string_view text);  // 0 for the empty one
    wire::Id module(ModuleHandle handle);
    wire::Id address(ResolvedAddress resolved, std::uint32_t flags);
    wire::Id name(std::string_view function) { return function_of(0, {function, {}, 0}, 0); }  // a name location
    // A name location for a function of a module whose addresses can later belong to other code.
    wire::Id function_of(ModuleHandle module, const JitFunction& function, std::uint32_t flags);
    wire::Id stack(wire::Id parent, wire::Id location);
    wire::Id process(ProcessHandle handle);
    wire::Id thread(ThreadHandle handle);
    wire::Id event(wire::Event event, std::string_view name, std::string_view unit);

    // Moves new entries into the tables of `batch`. Describes processes and threads as they are now, not as they were
    // when first seen, because a comm or exe often follows the fork within microseconds.
    void flush(wire::Batch& batch);
    // Memory size of the tables.
    [[nodiscard]] std::size_t bytes() const;
    // Preserve stacks for the next epoch: keep() copies them in one pass over the tables, put_back() adds them to the
    // new tables.
    [[nodiscard]] std::vector<SavedStack> keep(std::span<wire::Id* const> stacks) const;
    wire::Id put_back(const SavedStack& stack);
    // Starts a new epoch.
    void clear();

private:
    struct LocationKey {
        std::uint64_t address = 0;
        wire::Id module = 0;
        std::uint32_t flags = 0;
        bool operator==(const LocationKey&) const = default;
        [[nodiscard]] std::uint64_t hash() const;
    };
    struct NodeKey {
        wire::Id parent = 0, location = 0;
        bool operator==(const NodeKey&) const = default;
        [[nodiscard]] std::uint64_t hash() const;
    };
    struct NameKey {
        wire::Id name = 0, module = 0, file = 0;
        std::uint32_t line = 0, flags = 0;
        bool operator==(const NameKey&) const = default;
        [[nodiscard]] std::uint64_t hash() const;
    };
    struct HandleKey {
        std::uint32_t handle = 0;
        bool operator==(const HandleKey&) const = default;
        [[nodiscard]] std::uint64_t hash() const;
    };
    // Next free id of each table.
    struct Bases {
        wire::Id string = 1, module = 1, location = 1, stack = 1, process = 1, thread = 1, event = 1;
    };
    template <class T>
    struct Pending {
        std::uint32_t handle = 0;
        T info;  // as first seen, in case the process table no longer has it
    };

    wire::Process describe(const ProcessInfo& info);

    ProcessTable& processes_;
    Bases next_;
    Bases sent_;  // next_ at the last flush

    std::unordered_map<std::string, wire::Id> strings_;
    std::size_t string_bytes_ = 0;
    IdTable<HandleKey> modules_, processes_seen_, threads_;
    IdTable<LocationKey> locations_;
    IdTable<NodeKey> stacks_;
    IdTable<NameKey> names_;

    wire::Batch fresh_;  // its tables hold entries that are not sent yet
    std::vector<Pending<ProcessInfo>> fresh_processes_;
    std::vector<Pending<ThreadInfo>> fresh_threads_;
    std::vector<wire::Id> fresh_thread_processes_;
};

}  // namespace flamewire::agent
