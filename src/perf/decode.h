// Decodes records of perf_event_open. Pure, and safe on any bytes: lengths are checked before each read. Source:
// linux/perf_event.h, enum perf_event_type. The order of a sample's fields is that of the comment there.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/byte_reader.h"
#include "base/bytes.h"
#include "perf/attribute.h"
#include "perf/record.h"

namespace flamewire::perf {

struct RecordHeader {
    std::uint32_t type = 0;
    std::uint16_t misc = 0;
    std::uint16_t size = 0;  // of the whole record, including this header
};

// The header of `record`; nothing if it is shorter than a header.
std::optional<RecordHeader> record_header(Bytes record, std::endian order = std::endian::native);

// The event that wrote a record, and where and when.
struct Origin {
    std::uint64_t id = 0;
    std::uint32_t tid = 0;
    std::uint32_t cpu = 0;
    std::uint64_t time_ns = 0;
};

// All records but samples end in a trailer (sample_id) if the event's attribute has sample_id_all.
struct Trailed {
    Bytes body;  // without the trailer
    Origin origin;
};

std::size_t trailer_size(const RecordFormat& format);
// `body`: all after the header. Nothing if it is shorter than a trailer.
std::optional<Trailed> split_trailer(std::uint32_t type, Bytes body, const RecordFormat& format,
                                     std::endian order = std::endian::native);

// The size of a record's own fields, which a trailer may follow; it can exceed `body`. 0 also if it is not known here.
std::size_t own_size(std::uint32_t type, Bytes body, std::endian order = std::endian::native);

// The value of a counter at a sample.
struct CounterValue {
    std::uint64_t value = 0, id = 0;
};
// Of Sample::counters, to `values`: the event's counter, or those of its whole group.
void counter_values(const Sample& sample, const RecordFormat& format, std::vector<CounterValue>& values);

enum class Decoded {
    ok,
    skipped,    // a type that we do not use
    malformed,  // too short for its type; ignore `out`
};

// What is decoded has views into the record, and into the decoder if the record is not of this machine's byte order or
// does not start at an 8-byte boundary. They are valid until the next call.
class Decoder {
public:
    explicit Decoder(std::endian order = std::endian::native) : order_(order) {}

    // `body`: all after the header. False if it is too short for its fields, or if more of the stack was copied than it
    // has space for; ignore `out`.
    bool sample(std::uint16_t misc, Bytes body, const RecordFormat& format, Sample& out);
    // `body`: with or without the trailer. `origin`: from the trailer, if there is one.
    Decoded side_record(const RecordHeader& header, Bytes body, const Origin& origin, SideRecord& out) const;
    // `body`: with or without the trailer. Nothing if it is too short.
    std::optional<DeferredCallchain> deferred_callchain(Bytes body);

private:
    template <class T>
    std::span<const T> array(ByteReader& in, std::uint64_t count);

    std::endian order_;
    std::vector<std::uint64_t> copy_;  // arrays of the last sample that could not be used in place
};

}  // namespace flamewire::perf
