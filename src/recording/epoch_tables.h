// The tables of one epoch of a recording. Each entry gets the next id of its table and is sent once, with the next
// batch.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "wire/batch.h"

namespace flamewire::recording {

template <class Entry>
class Table {
public:
    wire::Id add(Entry entry) {
        unsent_.push_back(std::move(entry));
        return next_++;
    }
    // The id of the next entry. Id 0 is reserved.
    [[nodiscard]] wire::Id next() const { return next_; }
    // These may still change.
    [[nodiscard]] std::vector<Entry>& unsent() { return unsent_; }
    [[nodiscard]] std::size_t unsent_count() const { return unsent_.size(); }
    // Moves the unsent entries to a batch, whose table must be empty.
    void flush(wire::Id& base, std::vector<Entry>& entries) {
        base = next_ - static_cast<wire::Id>(unsent_.size());
        entries.swap(unsent_);
    }

private:
    wire::Id next_ = 1;
    std::vector<Entry> unsent_;
};

struct EpochTables {
    Table<std::string> strings;
    Table<wire::Module> modules;
    Table<wire::Location> locations;
    Table<wire::StackNode> stacks;
    Table<wire::Process> processes;
    Table<wire::Thread> threads;
    Table<wire::Event> events;

    // Of all tables but the events, which are few.
    [[nodiscard]] std::size_t unsent_count() const {
        return strings.unsent_count() + modules.unsent_count() + locations.unsent_count() + stacks.unsent_count() +
               processes.unsent_count() + threads.unsent_count();
    }
    void flush(wire::Batch& batch) {
        strings.flush(batch.string_base, batch.strings);
        modules.flush(batch.module_base, batch.modules);
        locations.flush(batch.location_base, batch.locations);
        stacks.flush(batch.stack_base, batch.stacks);
        processes.flush(batch.process_base, batch.processes);
        threads.flush(batch.thread_base, batch.threads);
        events.flush(batch.event_base, batch.events);
    }
};

}  // namespace flamewire::recording
