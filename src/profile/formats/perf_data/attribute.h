// The perf_event_attr of an event (linux/perf_event.h) as far as an importer needs it. All sizes that perf has ever
// written are accepted. Trailing fields that are unknown here are ignored.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"

namespace flamewire::profile::perf_data {

inline constexpr std::uint32_t tracepoint_type = 2;  // PERF_TYPE_TRACEPOINT

struct Attribute {
    std::uint32_t type = 0, size = 0;
    std::uint64_t config = 0;
    std::uint64_t period_or_frequency = 0;
    std::uint64_t sample_type = 0, read_format = 0;
    std::uint64_t branch_sample_type = 0, sample_regs_user = 0, sample_regs_intr = 0;
    std::uint32_t sample_stack_user = 0, sample_max_stack = 0;
    bool inherit = false, frequency = false, sample_id_all = false, exclude_callchain_user = false;

    std::string name, unit;
    std::vector<std::uint64_t> ids;  // ids of the kernel events that belong to it; can be empty

    [[nodiscard]] bool samples(std::uint64_t what) const { return (sample_type & what) != 0; }
    // The weight of a sample without a period of its own.
    [[nodiscard]] std::uint64_t usual_period() const;
};

inline constexpr std::size_t smallest_attribute = 64;  // PERF_ATTR_SIZE_VER0

// `bytes`: the stored attribute, at least smallest_attribute bytes. Missing fields are 0. `big_endian`: the file's byte
// order, which also reverses the bits of flag words.
Attribute parse_attribute(Bytes bytes, bool big_endian);

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

// Sets the name of `attribute` from its type and config unless it has one, and sets its unit.
void name_event(Attribute& attribute);

}  // namespace flamewire::profile::perf_data
