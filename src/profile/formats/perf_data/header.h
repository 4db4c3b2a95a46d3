// The head of a perf.data file: its order, its events, and what perf wrote down about the machine and the recording
// ("features"). In a stream (perf record -o -) events and features come as records among the others.
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
#include "profile/formats/perf_data/attribute.h"
#include "profile/formats/perf_data/told_names.h"

namespace flamewire::profile::perf_data {

// Whose file a build-id is of, as perf noted it after the recording.
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
    // The wall clock at a time of the recording's clock; 0: not known.
    std::int64_t wall_ns = 0;
    std::uint64_t wall_at_ns = 0;
};

struct Header {
    bool big_endian = false;  // the file's
    bool stream = false;      // written into a pipe
    std::uint64_t data_offset = 0, data_size = 0;
    std::vector<Attribute> attributes;
    Machine machine;
    ToldNames told;                  // of a file that we exported; else empty
    std::vector<unsigned> features;  // that the file has
    bool unfinished = false;         // perf did not come to write its end: there are no features
    bool cut = false;                // the file ends before its records do
    unsigned damaged_features = 0;

    [[nodiscard]] std::endian order() const { return byte_order(big_endian); }
};

bool is_perf_data(std::string_view beginning);

// invalid: no perf.data file, or one whose events cannot be read.
Result<Header> read_header(ImportSource& source);

// One feature, wherever it was; what is damaged is left out. False: it was.
bool read_feature(Header& header, unsigned feature, Bytes content);
// One entry of the table of build-ids, which is a record, too: `body` is what follows its header.
bool read_build_id(Header& header, std::uint16_t misc, Bytes body);
// An event and its ids out of a stream's record.
bool read_attribute_record(Header& header, Bytes body);
// Names that come in records of their own.
void read_event_type(Header& header, Bytes body);
void read_event_update(Header& header, Bytes body);

}  // namespace flamewire::profile::perf_data
