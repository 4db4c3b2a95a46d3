// Reads the records of a perf.data file in large blocks and passes them on in time order, without copying. Compressed
// records are decompressed. AUX data and other data between records is skipped.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/bytes.h"
#include "base/result.h"
#include "perf/round_order.h"
#include "profile/formats/import.h"
#include "profile/formats/perf_data/blocks.h"
#include "profile/formats/perf_data/event_ids.h"
#include "profile/formats/perf_data/header.h"

struct ZSTD_DCtx_s;

namespace flamewire::profile::perf_data {

// One record in memory.
struct Record {
    std::uint32_t type = 0;
    std::uint16_t misc = 0;
    std::uint16_t event = 0;    // of a sample: index into Header::events
    std::uint64_t time_ns = 0;  // 0: none
    Bytes body;                 // after its header
};

class RecordReader {
public:
    // Receives a record. Views into it are valid only during the call.
    using Visit = std::function<Result<bool>(const Record&)>;

    // `header` is the result of read_header(). Both arguments must outlive the reader.
    RecordReader(ImportSource& source, Header& header);
    ~RecordReader();
    RecordReader(const RecordReader&) = delete;
    RecordReader& operator=(const RecordReader&) = delete;

    // For a stream: finds its events and features, which can be anywhere in it. Call this before read(). For a file:
    // does nothing.
    Result<bool> find_header_records();
    // Reads all records except those about the file itself. Call this once. Damage is not an error: the records before
    // it are read, and damage() describes it.
    Result<bool> read(const Visit& visit, const std::function<void(std::uint64_t)>& progress);

    // One sentence without its period; empty: the records are undamaged.
    [[nodiscard]] const std::string& damage() const { return damage_; }
    // Samples with an unknown event.
    [[nodiscard]] std::uint64_t unknown_events() const { return unknown_events_; }
    // Valid after find_header_records().
    [[nodiscard]] EventIds& ids() { return ids_; }
    [[nodiscard]] std::uint64_t trace_bytes() const { return trace_bytes_; }  // AUX data: Intel PT, SPE, …

private:
    Result<bool> read_all();
    // Takes complete records at the front of `bytes` and returns their size in bytes.
    Result<std::size_t> take_records(Bytes bytes, Block& block, std::uint64_t offset, bool unpacked);
    Result<bool> take(Record record, Block& block, bool unpacked);
    Result<bool> unpack(Bytes packed);
    bool take_header_record(const Record& record);
    Result<bool> name_tracepoints();
    // Sets the time of a record and, for a sample, its event. False: the event is unknown.
    bool date(Record& record);
    std::uint64_t trailing_time(const Record& record);
    Result<bool> deliver(std::size_t count);
    Result<bool> deliver_if_many();
    void damaged(std::string what);

    ImportSource& source_;
    Header& header_;
    const Visit* visit_ = nullptr;
    const std::function<void(std::uint64_t)>* progress_ = nullptr;
    bool header_records_only_ = false;

    EventIds ids_;
    bool ordered_ = false;  // the samples of every event have times
    bool first_id_ = false, has_id_ = false;
    std::size_t sample_id_offset_ = 0;

    Blocks blocks_;
    // A record in a block, to which it has a reference.
    struct HeldRecord : Record {
        Block* block = nullptr;
    };
    perf::RoundOrder<HeldRecord> order_;
    std::uint64_t skip_ = 0;  // bytes to skip after the last record
    std::uint64_t tracing_data_offset_ = 0, tracing_data_bytes_ = 0;
    struct FreeStream {
        void operator()(ZSTD_DCtx_s* stream) const;
    };
    std::unique_ptr<ZSTD_DCtx_s, FreeStream> stream_;
    std::string left_over_;  // the start of a record that continues in the next compressed record
    bool unpack_failed_ = false;

    std::string damage_;
    std::uint64_t unknown_events_ = 0, trace_bytes_ = 0;
};

}  // namespace flamewire::profile::perf_data
