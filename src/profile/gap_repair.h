// Batches refer to table entries of earlier batches of their epoch. When some of those are missing (a damaged session file),
// this rewrites the ones behind them so that they refer only to what is there: ids are renumbered without gaps, and rows that
// refer to a missing entry become a loss. Pure: batches in, batches out.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "wire/batch.h"

namespace flamewire::profile {

class GapRepair {
public:
    // Announces the batch that comes next, before it is decoded. `gap`: some before it are missing.
    void begin(std::uint32_t epoch, bool gap);
    // How to decode that batch.
    [[nodiscard]] wire::EventTable events() const {
        return has_gaps_ ? wire::EventTable::with_gaps : wire::EventTable::whole;
    }
    // Rewrites it; nothing changes in an epoch without gaps. Rows that refer to missing entries become losses of reason
    // batches_missing; names of processes and threads that are missing become empty, other references are dropped.
    void apply(wire::Batch& batch);

private:
    // Ids [first, end) of the batches are ids from `to` on in the repaired ones.
    struct Run {
        wire::Id first = 0, end = 0, to = 0;
    };
    class IdMap {
    public:
        void clear();
        // Entries as they came, in an epoch without gaps.
        void keep(wire::Id base, std::size_t entries);
        // The id of a new entry.
        void add(wire::Id id);
        // Nothing if the entry is missing. Id 0 is always itself.
        [[nodiscard]] std::optional<wire::Id> find(wire::Id id) const;
        [[nodiscard]] wire::Id next() const { return next_; }

    private:
        std::vector<Run> runs_;  // ascending
        wire::Id next_ = 1;
    };

    // Replaces the references of `entry`; false if it is of no use without what is missing.
    bool repair(wire::Module& entry) const;
    bool repair(wire::Location& entry) const;
    bool repair(wire::StackNode& entry) const;
    bool repair(wire::Process& entry) const;
    bool repair(wire::Thread& entry) const;
    bool repair(wire::Event& entry) const;
    bool repair(wire::Lifecycle& entry) const;
    bool repair(wire::Symbol& entry) const;
    bool repair(wire::CounterValue& entry) const;
    template <class Entry>
    void repair_table(IdMap& ids, wire::Id& base, std::vector<Entry>& entries);
    void repair_rows(wire::Batch& batch) const;
    void repair_rest(wire::Batch& batch) const;

    std::uint32_t epoch_ = 0;
    bool has_gaps_ = false;
    IdMap strings_, modules_, locations_, stacks_, processes_, threads_, events_;
};

}  // namespace flamewire::profile
