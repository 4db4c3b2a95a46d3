// The perf_event_attr of an event (linux/perf_event.h), as far as it determines what the records contain.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "base/bytes.h"

namespace flamewire::perf {

// What the records of one event contain.
struct RecordFormat {
    std::uint64_t fields = 0;         // sample_type
    std::uint64_t read_format = 0;    // of PERF_SAMPLE_READ
    std::uint64_t branch_fields = 0;  // branch_sample_type
    std::uint64_t register_mask = 0;  // sample_regs_user
    std::uint64_t period = 1;         // of samples that have none of their own

    [[nodiscard]] bool has(std::uint64_t field) const { return (fields & field) != 0; }
};

// All sizes that perf has ever written are read. Trailing fields that are unknown here are ignored.
struct Attribute {
    std::uint32_t type = 0;
    std::uint64_t config = 0;
    std::uint64_t period_or_frequency = 0;
    std::uint64_t sample_type = 0, read_format = 0;
    std::uint64_t branch_sample_type = 0, sample_regs_user = 0;
    std::uint32_t sample_stack_user = 0, sample_max_stack = 0;
    bool inherit = false, frequency = false, sample_id_all = false;

    [[nodiscard]] bool samples(std::uint64_t what) const { return (sample_type & what) != 0; }
    // `period`: of samples that have none of their own.
    [[nodiscard]] RecordFormat record_format(std::uint64_t period) const {
        return {sample_type, read_format, branch_sample_type, sample_regs_user, period};
    }
};

inline constexpr std::size_t smallest_attribute = 64;  // PERF_ATTR_SIZE_VER0

// `bytes`: the stored attribute, at least smallest_attribute bytes. Missing fields are 0. A big-endian byte order also
// reverses the bits of flag words.
Attribute parse_attribute(Bytes bytes, std::endian order);

}  // namespace flamewire::perf
