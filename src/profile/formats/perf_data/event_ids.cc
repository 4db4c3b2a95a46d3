#include "profile/formats/perf_data/event_ids.h"

#include <algorithm>

namespace flamewire::profile::perf_data {

EventIds::EventIds(std::span<const RecordedEvent> events) {
    for (std::size_t i = 0; i < events.size(); ++i)
        for (const std::uint64_t id : events[i].ids) ids_.emplace_back(id, static_cast<std::uint16_t>(i));
    std::ranges::sort(ids_);
}

std::optional<std::uint16_t> EventIds::find(std::uint64_t id) {
    if (id == last_.first && id != 0) return last_.second;
    const auto found = std::ranges::lower_bound(ids_, id, {}, &std::pair<std::uint64_t, std::uint16_t>::first);
    if (found == ids_.end() || found->first != id) return std::nullopt;
    last_ = *found;
    return found->second;
}

}  // namespace flamewire::profile::perf_data
