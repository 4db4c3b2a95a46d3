// Sorts records by time. perf drains the ring of each CPU in turn and ends each such round with a record
// (PERF_RECORD_FINISHED_ROUND). Records after it are not older than the newest record of the round before.
#pragma once

#include <cstdint>
#include <vector>

#include "base/bytes.h"
#include "profile/formats/perf_data/blocks.h"

namespace flamewire::profile::perf_data {

// One record in memory.
struct Record {
    std::uint32_t type = 0;
    std::uint16_t misc = 0;
    std::uint16_t event = 0;    // of a sample: index into Header::events
    std::uint64_t time_ns = 0;  // 0: none
    Bytes body;                 // after its header
};

class RecordOrder {
public:
    struct Entry {
        Record record;
        Block* block = nullptr;
    };

    // `record` is in `block`. put() takes a reference to the block; the caller of drop() releases it.
    void put(const Record& record, Block& block);
    // The number of entries at the front that are in order and that no later record precedes, at the end of a round.
    std::size_t ready_at_round();
    // Half of the entries, for when too many wait. A later record can be older than these and is then out of order.
    std::size_t ready_half();
    // All entries, at the end of the file.
    std::size_t ready_all();
    [[nodiscard]] const Entry& entry(std::size_t index) const { return entries_[index]; }
    // Removes entries at the front.
    void drop(std::size_t count);
    [[nodiscard]] std::size_t size() const { return entries_.size(); }
    [[nodiscard]] std::size_t bytes() const { return entries_.size() * sizeof(Entry); }

private:
    void sort();

    std::vector<Entry> entries_;
    std::size_t sorted_ = 0;                   // number of entries at the front that are in order
    std::uint64_t newest_ = 0, released_ = 0;  // times: the newest record; the limit for the next round's end
};

}  // namespace flamewire::profile::perf_data
