// The tables of one epoch, from the process table's modules, processes and threads.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "agent/process/process_table.h"
#include "base/id_table.h"
#include "recording/interned_tables.h"
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
    // The vDSOs that got an id since the last call.
    std::vector<ModuleHandle> take_new_vdsos() { return std::exchange(new_vdsos_, {}); }
    wire::Id address(ResolvedAddress resolved, std::uint32_t flags);
    wire::Id name(std::string_view function) { return function_of(0, {function, {}, 0}, 0); }  // a name location
    // A name location for a function of a module whose addresses can later belong to other code.
    wire::Id function_of(ModuleHandle module, const JitFunction& function, std::uint32_t flags);
    wire::Id stack(wire::Id parent, wire::Id location) { return tables_.stack(parent, location); }
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
    struct HandleKey {
        std::uint32_t handle = 0;
        bool operator==(const HandleKey&) const = default;
        [[nodiscard]] std::uint64_t hash(std::uint64_t seed) const { return mix_in(seed, handle); }
    };
    template <class T>
    struct Pending {
        std::uint32_t handle = 0;
        T info;  // as first seen, in case the process table no longer has it
    };

    wire::Process describe(const ProcessInfo& info);

    ProcessTable& processes_;
    recording::InternedTables tables_;
    std::unordered_map<std::string, wire::Id> strings_;
    std::size_t string_bytes_ = 0;
    IdTable<HandleKey> modules_, processes_seen_, threads_;
    std::vector<ModuleHandle> new_vdsos_;
    // Of the unsent processes and threads, in the same order.
    std::vector<Pending<ProcessInfo>> fresh_processes_;
    std::vector<Pending<ThreadInfo>> fresh_threads_;
};

}  // namespace flamewire::agent
