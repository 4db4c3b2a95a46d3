// Decodes one perf record. Pure, and safe on any bytes: lengths are checked before each read.
// Layout: linux/perf_event.h, enum perf_event_type, for events with the fields of attr.h.
#pragma once

#include <cstdint>
#include <optional>

#include "agent/perf/attr.h"
#include "agent/perf/record.h"
#include "base/bytes.h"

namespace flamewire::agent {

inline constexpr std::size_t record_header_size = 8;

struct RecordHeader {
    std::uint32_t type = 0;
    std::uint16_t misc = 0;
    std::uint16_t size = 0;  // of the whole record, including this header
};

// The event that wrote the record, and where: from the sample, or from the trailer (sample_id) of other records.
struct RecordOrigin {
    std::uint64_t id = 0;
    std::uint32_t tid = 0;
    std::uint32_t cpu = 0;
};

enum class Decoded {
    ok,
    skipped,    // a type that we do not use
    malformed,  // too short for its type; ignore `out`
};

// The header of `record`; nothing if it is shorter than a header or states a smaller size than that.
std::optional<RecordHeader> record_header(Bytes record);

// The time of a record, without decoding it; 0 if it is too short to contain one.
std::uint64_t record_time(Bytes record);

// The thread of a sample, without decoding it; 0 if the record is not a sample, or is too short.
std::uint32_t sample_tid(Bytes record);

// The id of the event that took a sample; 0 if the record is not a sample, or is too short.
std::uint64_t sample_id(Bytes record);

// Decodes one whole record (record.size() == its header's size) that starts at an 8-byte boundary in memory. `layout`
// is that of the event that wrote the sample (sample_id); it is ignored for other records. Views in `out` point into
// `record`. The caller sets LostRecord::sideband.
Decoded decode_record(Bytes record, const SampleLayout& layout, Record& out, RecordOrigin& origin);

}  // namespace flamewire::agent
