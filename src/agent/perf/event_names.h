// Names for events that the kernel's ABI fixes: generic hardware events, software events and the cache event matrix
// (linux/perf_event.h: perf_hw_id, perf_sw_ids, perf_hw_cache_id), spelled as in perf.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace flamewire::agent {

struct NamedEvent {
    std::string_view name;
    std::string_view alias;  // second spelling; may be empty
    std::uint32_t type;      // PERF_TYPE_HARDWARE, _SOFTWARE or _HW_CACHE
    std::uint64_t config;
    std::string_view unit;
};

// Hardware and software events.
std::span<const NamedEvent> named_events();

// Finds a hardware, software or cache event (`L1-dcache-load-misses`, `LLC-loads`, `branch-load-misses`) by name.
std::optional<NamedEvent> find_named_event(std::string_view name);

}  // namespace flamewire::agent
