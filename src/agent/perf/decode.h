// Decodes one record of a ring: perf/decode.h with the fields of attr.h.
#pragma once

#include <cstdint>

#include "agent/perf/attr.h"
#include "agent/perf/record.h"
#include "base/bytes.h"
#include "perf/decode.h"

namespace flamewire::agent {

// The time of a record, without decoding it; 0 if it is too short to contain one.
std::uint64_t record_time(Bytes record);

// The thread of a sample, without decoding it; 0 if the record is not a sample, or is too short.
std::uint32_t sample_tid(Bytes record);

// The id of the event that took a sample; 0 if the record is not a sample, or is too short.
std::uint64_t sample_id(Bytes record);

// Decodes one whole record (record.size() == its header's size) that starts at an 8-byte boundary in memory: otherwise
// it is malformed. `layout` is that of the event that wrote the sample (sample_id); it is ignored for other records.
// Views in `out` point into `record`. The caller sets LostRecord::sideband.
perf::Decoded decode_record(Bytes record, const SampleLayout& layout, Record& out, perf::Origin& origin);

}  // namespace flamewire::agent
