// Brings records into the order of their times. perf writes what it finds in the ring of each CPU, one after the other,
// and at the end of such a round says so: what comes later is not older than the newest record of the round before.
#pragma once

#include <cstdint>
#include <vector>

#include "base/bytes.h"
#include "profile/formats/perf_data/blocks.h"

namespace flamewire::profile::perf_data {

// One record as it stands in memory.
struct Record {
    std::uint32_t type = 0;
    std::uint16_t misc = 0;
    std::uint16_t attribute = 0;  // of a sample: index into Header::attributes
    std::uint64_t time_ns = 0;    // 0: it has none
    Bytes body;                   // behind its header
};

class RecordOrder {
public:
    struct Entry {
        Record record;
        Block* block = nullptr;
    };

    // `record` stands in `block`, which is held until whoever drops the entry releases it.
    void put(const Record& record, Block& block);
    // How many entries at the front are in order, and no record to come is older: at the end of a round, …
    std::size_t ready_at_round();
    // … when too much waits (then one that comes may be older, and comes late), …
    std::size_t ready_half();
    // … and at the end.
    std::size_t ready_all();
    [[nodiscard]] const Entry& entry(std::size_t index) const { return entries_[index]; }
    // Forgets so many at the front.
    void drop(std::size_t count);
    [[nodiscard]] std::size_t size() const { return entries_.size(); }
    [[nodiscard]] std::size_t bytes() const { return entries_.size() * sizeof(Entry); }

private:
    void sort();

    std::vector<Entry> entries_;
    std::size_t sorted_ = 0;                   // so many at the front are in order
    std::uint64_t newest_ = 0, released_ = 0;  // times: of all, and up to where the next round's end gives out
};

}  // namespace flamewire::profile::perf_data
