// Writes perf.data files byte by byte, in either byte order, and imports them.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "profile/formats/collapsed.h"
#include "profile/formats/import.h"
#include "profile/formats/perf_data/perf_data_import.h"
#include "profile/store/functions.h"
#include "profile/store/tables.h"

namespace flamewire::profile::perf_data {

// Numbers and texts in sequence, in one byte order.
class Writer {
public:
    explicit Writer(bool big_endian) : big_(big_endian) {}
    Writer& u8(std::uint64_t value) { return number(value, 1); }
    Writer& u16(std::uint64_t value) { return number(value, 2); }
    Writer& u32(std::uint64_t value) { return number(value, 4); }
    Writer& u64(std::uint64_t value) { return number(value, 8); }
    Writer& text(std::string_view value) {
        bytes_ += value;
        return *this;
    }
    // With at least one NUL, padded to a multiple of 8.
    Writer& padded(std::string_view value) {
        bytes_ += value;
        bytes_.append(8 - value.size() % 8, '\0');
        return *this;
    }
    [[nodiscard]] const std::string& bytes() const { return bytes_; }
    [[nodiscard]] bool big() const { return big_; }

private:
    Writer& number(std::uint64_t value, unsigned size) {
        for (unsigned i = 0; i < size; ++i) bytes_ += static_cast<char>(value >> 8 * (big_ ? size - 1 - i : i));
        return *this;
    }
    bool big_;
    std::string bytes_;
};

// Bits of sample_type, linux/perf_event.h.
enum SampleBits : std::uint64_t {
    with_ip = 1,
    with_tid = 2,
    with_time = 4,
    with_read = 16,
    with_chain = 32,
    with_id = 64,
    with_cpu = 128,
    with_period = 256,
    with_raw = 1024,
    with_branches = 2048,
    with_identifier = 65536,
};

struct EventOf {
    std::uint32_t type = 1;  // software
    std::uint64_t config = 0, period = 1000, sample_type = with_ip | with_tid | with_time | with_period,
                  read_format = 0;
    bool sample_id_all = true;
    std::uint64_t branches = 0;
    std::vector<std::uint64_t> ids = {};
    std::uint32_t size = 136;  // at least 64
};

// struct perf_event_attr.
inline std::string attribute(const EventOf& event, bool big) {
    Writer out(big);
    out.u32(event.type)
        .u32(event.size)
        .u64(event.config)
        .u64(event.period)
        .u64(event.sample_type)
        .u64(event.read_format);
    // Bit 18 of the flags. On big-endian machines, compilers count the bits of each byte from its other end.
    for (unsigned byte = 0; byte < 8; ++byte) out.u8(byte == 2 && event.sample_id_all ? (big ? 0x20 : 0x04) : 0);
    out.u64(0).u64(0).u64(0).u64(event.branches);
    std::string bytes = out.bytes();
    bytes.resize(event.size, '\0');
    return bytes;
}

inline std::string record(bool big, std::uint32_t type, std::uint16_t misc, const Writer& body) {
    return Writer(big).u32(type).u16(misc).u16(8 + body.bytes().size()).bytes() + body.bytes();
}

// A whole file: header, events, records, and features (number and content).
inline std::string perf_file(bool big, const std::vector<EventOf>& events, const std::string& records,
                             const std::vector<std::pair<unsigned, std::string>>& features = {}) {
    const std::uint64_t header = 104, entry = events.front().size + 16;
    std::string ids, entries;
    for (const EventOf& event : events) {
        Writer numbers(big);
        for (const std::uint64_t id : event.ids) numbers.u64(id);
        entries += attribute(event, big) + Writer(big).u64(header + ids.size()).u64(numbers.bytes().size()).bytes();
        ids += numbers.bytes();
    }
    const std::uint64_t data = header + ids.size() + entries.size();
    std::uint64_t bits = 0, place = data + records.size() + 16 * features.size();
    Writer table(big);
    std::string contents;
    for (const auto& [number, content] : features) {
        bits |= std::uint64_t{1} << number;
        table.u64(place + contents.size()).u64(content.size());
        contents += content;
    }
    Writer out(big);
    out.text(big ? "2ELIFREP" : "PERFILE2").u64(header).u64(entry).u64(header + ids.size()).u64(entries.size());
    out.u64(data).u64(records.size()).u64(0).u64(0).u64(bits).u64(0).u64(0).u64(0);
    return out.bytes() + ids + entries + records + table.bytes() + contents;
}

class TextSource final : public ImportSource {
public:
    explicit TextSource(std::string bytes) : bytes_(std::move(bytes)) {}
    [[nodiscard]] std::uint64_t size() const override { return bytes_.size(); }
    Result<std::size_t> read_at(std::uint64_t offset, std::span<char> into) override {
        if (offset >= bytes_.size()) return std::size_t{0};
        return bytes_.copy(into.data(), into.size(), static_cast<std::size_t>(offset));
    }

private:
    std::string bytes_;
};

// An import as a store that received it over the wire.
class Imported final : public ImportJob {
public:
    explicit Imported(std::string file, std::string sysroot = {})
        : source_(std::move(file)), sysroot_(std::move(sysroot)) {
        Result<bool> done = import_perf_data(*this);
        if (done && builder_) done = builder_->finish("imported");
        if (!done) problem = done.error().message;
    }
    ImportSource& source() override { return source_; }
    [[nodiscard]] const std::string& name() const override { return name_; }
    RecordingBuilder& begin(wire::Recording recording, std::int64_t wall_ns) override {
        about = recording;
        realtime_ns = wall_ns;
        return builder_.emplace(wire::RecordingId{1}, std::move(recording), wall_ns,
                                [this](wire::Batch batch) { return take(std::move(batch)); });
    }
    [[nodiscard]] std::string module_file(const symbol::ModuleIdentity&) override { return {}; }
    [[nodiscard]] std::string in_sysroot(std::string_view path) override {
        return sysroot_.empty() ? std::string() : sysroot_ + std::string(path);
    }
    void progress(std::uint64_t) override {}

    // The samples of each stack, or with `weights` their weights.
    [[nodiscard]] std::string lines(bool weights = false) const { return collapsed(store, {}, {.weights = weights}); }
    [[nodiscard]] bool noted(std::string_view code) const {
        return std::ranges::any_of(notices, [&](const wire::Notice& one) { return one.code == code; });
    }

    Store store;
    wire::Recording about;
    std::int64_t realtime_ns = 0;
    std::vector<wire::Notice> notices;
    std::vector<wire::Loss> losses;
    std::vector<wire::Lifecycle> lifecycle;
    std::vector<wire::Row> rows;
    std::string problem;

private:
    Result<bool> take(wire::Batch batch) {
        notices.insert(notices.end(), batch.notices.begin(), batch.notices.end());
        losses.insert(losses.end(), batch.losses.begin(), batch.losses.end());
        lifecycle.insert(lifecycle.end(), batch.lifecycle.begin(), batch.lifecycle.end());
        rows.insert(rows.end(), batch.rows.begin(), batch.rows.end());
        wire::learn_periods(batch, periods_);
        const std::string bytes = wire::encode(batch, periods_);
        const wire::Batch arrived = TRY(wire::decode(as_bytes_view(bytes), theirs_));
        TRY(store.apply(arrived));
        return true;
    }

    TextSource source_;
    std::string sysroot_;
    std::string name_ = "perf.data";
    wire::EventPeriods periods_, theirs_;
    std::optional<RecordingBuilder> builder_;
};

}  // namespace flamewire::profile::perf_data
