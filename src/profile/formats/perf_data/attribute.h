// What a perf.data file says of one event: perf_event_attr (linux/perf_event.h) as far as an importer needs it, of any
// size that perf has ever written; what follows what we know is of no interest.
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
    std::vector<std::uint64_t> ids;  // of the kernel's events that this one is; may be empty

    [[nodiscard]] bool samples(std::uint64_t what) const { return (sample_type & what) != 0; }
    // Weight of a sample that tells no period of its own.
    [[nodiscard]] std::uint64_t usual_period() const;
};

inline constexpr std::size_t smallest_attribute = 64;  // PERF_ATTR_SIZE_VER0

// `bytes`: what there is of it, smallest_attribute at least; what is missing is 0. `big_endian`: the file's order, in
// which even the order of the bits of a flag word is another one.
Attribute parse_attribute(Bytes bytes, bool big_endian);

// "cycles", "sched:sched_switch" → the name without modifiers, as the agent has it. Leaves out what perf puts behind a
// name: "cycles:ppp" → "cycles", "cpu_core/cycles/u" → "cycles", "cpu/mem-loads,ldlat=30/P" as it is.
std::string plain_event_name(std::string_view name);

// Type and config of an event with that name; one without numbers gets some that no CPU has, and its name stands beside.
struct EventNumbers {
    std::uint32_t type = 0;
    std::uint64_t config = 0;
};
EventNumbers numbers_of_event(std::string_view name);

// Gives `attribute` the name that its numbers have unless it has one, and its unit.
void name_event(Attribute& attribute);

}  // namespace flamewire::profile::perf_data
