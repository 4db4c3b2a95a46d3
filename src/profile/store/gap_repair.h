// Batches refer to table entries of earlier batches of their epoch. If some batches are missing (a damaged session
// file), this rewrites the later ones so that they refer only to known entries: it renumbers ids without gaps and turns
// rows that refer to missing entries into a loss. Pure.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "wire/batch.h"

namespace flamewire::profile {

class GapRepair {
public:
    // Call before decoding each batch. `gap`: batches before it are missing.
    void begin(std::uint32_t epoch, bool gap);
    // The mode in which to decode that batch.
    [[nodiscard]] wire::EventTable events() const {
        return has_gaps_ ? wire::EventTable::with_gaps : wire::EventTable::whole;
    }
    // Rewrites the decoded batch. Without gaps in the epoch the batch does not change. Rows that refer to missing
    // entries become losses (batches_missing), missing names of processes and threads become empty, and other entries
    // are dropped.
    void apply(wire::Batch& batch);

private:
    // Maps ids [first, end) to [to, …).
    struct Run {
        wire::Id first = 0, end = 0, to = 0;
    };
    class IdMap {
    public:
        void clear();
        // Maps entries to themselves, in an epoch without gaps.
        void keep(wire::Id base, std::size_t entries);
        // Ids ascend within an epoch. Call skip() for each new id. add() then maps the id of a usable entry to the next
        // free one.
        void skip(wire::Id id) { end_ = id + 1; }
        void add(wire::Id id);
        // Nullopt if the entry is missing. Id 0 always maps to itself.
        [[nodiscard]] std::optional<wire::Id> find(wire::Id id) const;
        [[nodiscard]] wire::Id next() const { return next_; }
        [[nodiscard]] wire::Id end() const { return end_; }

    private:
        std::vector<Run> runs_;        // ascending
        wire::Id next_ = 1, end_ = 1;  // the next free id; one past all ids of the batches
    };

    // Replaces the references of `entry`; false if a reference that it needs is missing.
    bool repair(wire::Module& entry) const;
    bool repair(wire::Location& entry) const;
    bool repair(wire::StackNode& entry) const;
    bool repair(wire::Process& entry) const;
    bool repair(wire::Thread& entry) const;
    bool repair(wire::Event& entry) const;
    bool repair(wire::Lifecycle& entry) const;
    bool repair(wire::Symbol& entry) const;
    bool repair(wire::CounterValue& entry) const;
    bool repair(wire::Hits& hits) const;
    template <class Entry>
    void repair_table(IdMap& ids, wire::Id& base, std::vector<Entry>& entries);
    void repair_rows(wire::Batch& batch) const;
    void repair_rest(wire::Batch& batch) const;

    std::uint32_t epoch_ = 0;
    bool has_gaps_ = false;
    IdMap strings_, modules_, locations_, stacks_, processes_, threads_, events_;
};

}  // namespace flamewire::profile
