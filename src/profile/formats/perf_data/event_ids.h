// Maps the ids in records to events.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "profile/formats/perf_data/recorded_event.h"

namespace flamewire::profile::perf_data {

class EventIds {
public:
    explicit EventIds(std::span<const RecordedEvent> events);
    // Returns the index into the events.
    std::optional<std::uint16_t> find(std::uint64_t id);

private:
    std::vector<std::pair<std::uint64_t, std::uint16_t>> ids_;  // sorted
    std::pair<std::uint64_t, std::uint16_t> last_{0, 0};        // the last hit; id 0: none
};

}  // namespace flamewire::profile::perf_data
