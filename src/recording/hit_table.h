// Samples of traced events, until the next batch. At most wire::max_batch_hits, and wire::max_hit_text_bytes of texts:
// further ones are only counted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/bytes.h"
#include "perf/record.h"
#include "perf/tracepoint_format.h"
#include "wire/batch.h"

namespace flamewire::recording {

class HitTable {
public:
    // Adds a sample. `order`: of its data. Returns addresses among its values that are new in this batch; place() takes what is there.
    std::vector<std::uint64_t> add(wire::Id event, const wire::Hit& hit, const perf::Sample& sample,
                                   const perf::ValueFields& fields, std::endian order = std::endian::native);
    // `location`: what is at an address that add() returned; 0: not known.
    void place(wire::Id event, std::uint64_t address, wire::Id location);

    // In the order in which the events came.
    std::vector<wire::Hits> take();

private:
    struct OfEvent {
        wire::Hits hits;
        std::unordered_map<std::string, std::uint32_t> texts;
        std::unordered_map<std::uint64_t, wire::Id> places;
    };
    OfEvent& of(wire::Id event);
    std::uint64_t text(OfEvent& table, Bytes bytes);

    std::vector<OfEvent> events_;
    std::size_t hits_ = 0, text_bytes_ = 0;
};

// The wire's description of an event's values.
std::vector<wire::EventField> fields_on_wire(const perf::ValueFields& fields);

}  // namespace flamewire::recording
