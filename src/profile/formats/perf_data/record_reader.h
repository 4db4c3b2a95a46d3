// Reads the records of a perf.data file in large pieces and hands them out in the order of their times, in place.
// Compressed records are opened on the way; AUX data and what else stands between records is stepped over.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "base/result.h"
#include "profile/formats/import.h"
#include "profile/formats/perf_data/blocks.h"
#include "profile/formats/perf_data/event_ids.h"
#include "profile/formats/perf_data/header.h"
#include "profile/formats/perf_data/record_order.h"

struct ZSTD_DCtx_s;

namespace flamewire::profile::perf_data {

class RecordReader {
public:
    // Takes a record; views into it are valid only during the call.
    using Visit = std::function<Result<bool>(const Record&)>;

    // `header` as read_header() made it. Both outlive the reader.
    RecordReader(ImportSource& source, Header& header);
    ~RecordReader();
    RecordReader(const RecordReader&) = delete;
    RecordReader& operator=(const RecordReader&) = delete;

    // Of a stream: looks for its events and features, which are anywhere in it, before read(). Of a file: nothing.
    Result<bool> find_header_records();
    // All records but those that are about the file itself; to be called once. Damage is no error: what is whole before it
    // is read, and damage() says the rest.
    Result<bool> read(const Visit& visit, const std::function<void(std::uint64_t)>& progress);

    // One sentence without its full stop; empty: the records are whole.
    [[nodiscard]] const std::string& damage() const { return damage_; }
    // Samples whose event nobody knows.
    [[nodiscard]] std::uint64_t unknown_events() const { return unknown_events_; }
    [[nodiscard]] std::uint64_t trace_bytes() const { return trace_bytes_; }  // AUX data: Intel PT, SPE, …
    [[nodiscard]] const std::map<std::uint32_t, std::uint64_t>& unread_types() const { return unread_; }

private:
    Result<bool> read_all();
    // Takes whole records at the front of `bytes`; returns how many bytes they are.
    Result<std::size_t> take_records(Bytes bytes, Block& block, std::uint64_t offset, bool unpacked);
    Result<bool> take(Record record, Block& block, bool unpacked);
    Result<bool> unpack(Bytes packed);
    bool take_header_record(const Record& record);
    Result<bool> name_tracepoints();
    // The time of a record and, of a sample, its event. False: nobody knows its event.
    bool date(Record& record);
    std::uint64_t trailing_time(const Record& record);
    Result<bool> give_out(std::size_t count);
    Result<bool> visit_one(const Record& record);
    void damaged(std::string what);

    ImportSource& source_;
    Header& header_;
    const Visit* visit_ = nullptr;
    const std::function<void(std::uint64_t)>* progress_ = nullptr;
    bool header_records_only_ = false;

    EventIds ids_;
    bool ordered_ = false;  // every event's samples have times
    bool first_id_ = false, has_id_ = false;
    std::size_t sample_id_offset_ = 0;

    Blocks blocks_;
    RecordOrder order_;
    std::uint64_t skip_ = 0;  // bytes behind the record that was taken last
    std::uint64_t tracing_data_offset_ = 0, tracing_data_bytes_ = 0;
    struct FreeStream {
        void operator()(ZSTD_DCtx_s* stream) const;
    };
    std::unique_ptr<ZSTD_DCtx_s, FreeStream> stream_;
    std::string left_over_;  // a record that goes on in the next compressed one
    bool unpack_failed_ = false;

    std::string damage_;
    std::uint64_t unknown_events_ = 0, trace_bytes_ = 0;
    std::map<std::uint32_t, std::uint64_t> unread_;
};

}  // namespace flamewire::profile::perf_data
