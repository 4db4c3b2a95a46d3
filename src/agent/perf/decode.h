// One perf record from its bytes. Pure, and safe on any bytes: lengths are checked before anything is read.
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
    std::uint16_t size = 0;  // of the whole record, this header included
};

// Which event wrote the record, where: id of the sample, or the trailer (sample_id) of all others.
struct RecordOrigin {
    std::uint64_t id = 0;
    std::uint32_t tid = 0;
    std::uint32_t cpu = 0;
};

enum class Decoded {
    ok,
    skipped,    // a type that we do not use
    malformed,  // too short for its type; `out` holds nothing of use
};

// The header of `record`; nothing when it is shorter than a header or says a size below that.
std::optional<RecordHeader> record_header(Bytes record);

// The time of a record, without decoding it; 0 when it is too short to have one.
std::uint64_t record_time(Bytes record);

// The thread of a sample, without decoding it; 0 when the record is no sample, or too short to have one.
std::uint32_t sample_tid(Bytes record);

// The id of the event that took a sample; 0 when the record is no sample, or too short to have one.
std::uint64_t sample_id(Bytes record);

// Decodes one whole record (record.size() == its header's size) that starts at an 8-byte boundary in memory. `layout`
// is that of the event whose sample it is (sample_id); it means nothing for other records. Views in `out` point into
// `record`. LostRecord::sideband is the caller's to set.
Decoded decode_record(Bytes record, const SampleLayout& layout, Record& out, RecordOrigin& origin);

}  // namespace flamewire::agent
