// The header of a perf.data file: byte order, events, and perf's notes about the machine and the recording
// ("features"). In a stream (perf record -o -), events and features are records among the others.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/byte_reader.h"
#include "base/bytes.h"
#include "base/result.h"
#include "profile/formats/import.h"
#include "profile/formats/perf_data/embedded_symbols.h"
#include "profile/formats/perf_data/recorded_event.h"

namespace flamewire::profile::perf_data {

// The path that a build-id belongs to, as perf noted it after the recording.
struct KnownBuildId {
    std::string path, build_id;
    bool kernel = false;
};

struct Machine {
    std::string host, kernel_release, arch, perf_version;
    std::uint32_t cpus = 0;
    std::string command_line;  // of perf itself
    std::vector<KnownBuildId> build_ids;
    std::uint64_t first_sample_ns = 0;
    // The wall clock at the time wall_at_ns of the recording's clock; 0: unknown.
    std::int64_t wall_ns = 0;
    std::uint64_t wall_at_ns = 0;
};

struct Header {
    bool big_endian = false;  // of the file
    bool stream = false;      // written into a pipe
    std::uint64_t data_offset = 0, data_size = 0;
    std::vector<RecordedEvent> events;
    Machine machine;
    EmbeddedSymbols embedded;        // of a file that Flamewire exported; else empty
    std::vector<unsigned> features;  // features that the file has
    bool unfinished = false;         // perf did not finish the file: it has no features
    bool cut = false;                // the file ends before its last record
    unsigned damaged_features = 0;

    [[nodiscard]] std::endian order() const { return byte_order(big_endian); }
};

bool is_perf_data(std::string_view beginning);

// invalid: not a perf.data file, or its events are not readable.
Result<Header> read_header(ImportSource& source);

// Reads one feature, from the header or from a record. Damaged parts are left out. Returns false if the feature is
// damaged.
bool read_feature(Header& header, unsigned feature, Bytes content);
// Reads one entry of the build-id table, or a build-id record. `body`: the bytes after its header.
bool read_build_id(Header& header, std::uint16_t misc, Bytes body);
// Reads an event and its ids from a record of a stream.
bool read_attribute_record(Header& header, Bytes body);
// Read event names that are in records of their own.
void read_event_type(Header& header, Bytes body);
void read_event_update(Header& header, Bytes body);

}  // namespace flamewire::profile::perf_data
