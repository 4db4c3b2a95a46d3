// An event of a perf.data file: its attribute, and what the file says beside it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "perf/attribute.h"

namespace flamewire::profile::perf_data {

struct RecordedEvent : perf::Attribute {
    RecordedEvent() = default;
    explicit RecordedEvent(const perf::Attribute& attribute) : perf::Attribute(attribute) {}

    std::string name, unit;
    std::vector<std::uint64_t> ids;  // ids of the kernel events that belong to it; can be empty

    [[nodiscard]] perf::RecordFormat format() const;

private:
    // The weight of a sample without a period of its own.
    [[nodiscard]] std::uint64_t usual_period() const;
};

// "cycles", "sched:sched_switch" → the name without modifiers, as the agent writes it. Drops what perf appends:
// "cycles:ppp" → "cycles", "cpu_core/cycles/u" → "cycles". "cpu/mem-loads,ldlat=30/P" stays unchanged.
std::string plain_event_name(std::string_view name);

// The type and config of the event with that name. An unknown name gets a config that no CPU has; the name itself is
// stored separately.
struct EventNumbers {
    std::uint32_t type = 0;
    std::uint64_t config = 0;
};
EventNumbers numbers_of_event(std::string_view name);

// Sets the name of `event` from its type and config unless it has one, and sets its unit.
void name_event(RecordedEvent& event);

}  // namespace flamewire::profile::perf_data
