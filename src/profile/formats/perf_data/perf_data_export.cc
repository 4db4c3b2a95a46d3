#include "profile/formats/perf_data/perf_data_export.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "perf/abi.h"
#include "profile/formats/perf_data/export_records.h"
#include "profile/formats/perf_data/layout.h"
#include "profile/formats/perf_data/recorded_event.h"
#include "profile/formats/thread_samples.h"

namespace flamewire::profile::perf_data {
namespace {

constexpr std::uint64_t file_header_size = 104;
constexpr std::uint32_t attribute_size = 112;  // PERF_ATTR_SIZE_VER5: perf rejects sizes greater than its own
constexpr std::size_t round_samples = 16'384;
constexpr std::size_t most_bytes = std::size_t{2} << 30;
constexpr std::uint32_t no_cpu = 0xffff'ffff;  // for rows whose CPU was folded away; perf uses -1 for "unknown"

// A lifecycle change or loss between samples.
struct Change {
    enum class Kind : std::uint8_t { fork, exit, lost } kind = Kind::fork;
    std::uint64_t time_ns = 0, count = 0;
    ThreadId thread = 0;
    EventId event = 0;
};

bool is_of_samples(wire::LossReason reason) {
    return reason == wire::LossReason::ring_full || reason == wire::LossReason::spool_full ||
           reason == wire::LossReason::queue_full || reason == wire::LossReason::unknown;
}

class Export {
public:
    Export(const Store& store, const Filter& filter, const ExportOptions& options)
        : store_(store), tables_(store.tables()), filter_(filter), options_(options), addresses_(tables_) {}

    Result<std::string> write() {
        collect();
        addresses_.lay_out();
        ExportRecords records(tables_, addresses_);
        TRY(put_records(records));
        return file(records.take());
    }

private:
    void collect();
    [[nodiscard]] std::vector<Change> changes() const;
    Result<bool> put_records(ExportRecords& records) const;
    void put_attribute(Output& out, EventId event) const;
    [[nodiscard]] std::vector<std::pair<unsigned, std::string>> features() const;
    [[nodiscard]] std::string build_ids() const;
    [[nodiscard]] std::string event_names() const;
    [[nodiscard]] std::string file(const std::string& records) const;

    const Store& store_;
    const Store::Tables& tables_;
    const Filter& filter_;
    const ExportOptions& options_;
    ExportAddresses addresses_;
    struct Rows {
        ExportedSample sample;  // its period is the total of the row
        std::uint64_t count = 0;
    };
    std::vector<EventId> events_;
    std::vector<Rows> rows_;
    std::uint64_t samples_ = 0;
};

void Export::collect() {
    for (const EventId event : events_of(store_, filter_))
        if (tables_.event_totals[event].samples != 0) events_.push_back(event);
    if (events_.empty()) events_ = events_of(store_, filter_);
    tables_.rows.for_each(select(tables_, filter_).rows, [&](const RowChunk& chunk, const Row& row) {
        const std::uint32_t cpu = row.lane.cpu == folded_cpu ? no_cpu : row.lane.cpu;
        rows_.push_back(
            {{row.bucket * chunk.bucket_ns, row.weight, row.lane.event, row.lane.thread, cpu, row.stack}, row.count});
        samples_ += std::min(row.count, options_.most_samples + 1);
        addresses_.announce(row.stack);
    });
    std::ranges::sort(rows_, {}, [](const Rows& one) {
        const ExportedSample& sample = one.sample;
        return std::tuple(sample.time_ns, sample.thread, sample.event, sample.stack, sample.cpu);
    });
}

std::vector<Change> Export::changes() const {
    std::vector<Change> changes;
    if (rows_.empty()) return changes;
    const std::uint64_t first = rows_.front().sample.time_ns, last = rows_.back().sample.time_ns;
    std::vector<std::uint8_t> sampled(tables_.threads.size());
    std::vector<std::uint64_t> first_of(tables_.processes.size());  // time of the process's first sample; 0: none
    for (const Rows& row : rows_) {
        sampled[row.sample.thread] = 1;
        std::uint64_t& begin = first_of[tables_.threads[row.sample.thread].process];
        if (begin == 0) begin = row.sample.time_ns;
    }
    for (ThreadId id = 1; id < tables_.threads.size(); ++id) {
        const Thread& thread = tables_.threads[id];
        const wire::Process& process = tables_.processes[thread.process].wire;
        // Samples have the start time of their bucket, which can precede the start of the process.
        if (thread.tid == thread.pid && process.parent_pid != 0 && process.exec_generation == 0 &&
            process.start_time_ns > first && process.start_time_ns <= last && first_of[thread.process] != 0)
            changes.push_back(
                {Change::Kind::fork, std::min(process.start_time_ns, first_of[thread.process]), 0, id, 0});
        if (sampled[id] != 0 && thread.ended_ns > first)
            changes.push_back({Change::Kind::exit, thread.ended_ns, 0, id, 0});
    }
    for (const LossTotal& loss : store_.losses())
        if (is_of_samples(loss.reason) && loss.count != 0)
            changes.push_back({Change::Kind::lost, std::clamp(loss.last_ns, first, last), loss.count, 0, loss.event});
    std::ranges::sort(changes, {}, &Change::time_ns);
    return changes;
}

Result<bool> Export::put_records(ExportRecords& records) const {
    const std::vector<Change> changes = this->changes();
    auto change = changes.begin();
    const auto put_changes_until = [&](std::uint64_t time_ns) {
        for (; change != changes.end() && change->time_ns <= time_ns; ++change) {
            if (change->kind == Change::Kind::fork) records.fork(change->thread, change->time_ns);
            if (change->kind == Change::Kind::exit) records.exit(change->thread, change->time_ns);
            if (change->kind == Change::Kind::lost) records.lost(change->event, change->count, change->time_ns);
        }
    };
    records.begin();
    const bool each = samples_ <= options_.most_samples;
    std::size_t in_round = 0;
    for (const Rows& row : rows_) {
        put_changes_until(row.sample.time_ns);
        const std::uint64_t count = each ? row.count : 1;
        ExportedSample one = row.sample;
        for (std::uint64_t i = 0; i < count && records.size() <= most_bytes; ++i) {
            // The remainder of the division goes to the first samples.
            one.period = row.sample.period / count + (i < row.sample.period % count ? 1 : 0);
            records.sample(one);
        }
        if (records.size() > most_bytes)
            return fail(ErrorCode::too_large,
                        "as a perf.data file this would have more than 2 GiB: take a shorter time or one event, or "
                        "export it as pprof, which adds equal samples up");
        in_round += count;
        if (in_round >= round_samples) {
            records.round();
            in_round = 0;
        }
    }
    put_changes_until(std::numeric_limits<std::uint64_t>::max());
    return true;
}

void Export::put_attribute(Output& out, EventId event) const {
    const Event& about = tables_.events[event];
    const auto [type, config] = numbers_of_event(about.name);
    const std::uint32_t hz = about.frequency_hz != 0          ? about.frequency_hz
                             : store_.recording().has_value() ? store_.recording()->frequency_hz
                                                              : 0;
    const bool frequency = about.period == 0 && hz != 0;
    constexpr std::uint64_t mmap_bit = 1 << 8, comm_bit = 1 << 9, freq_bit = 1 << 10, task_bit = 1 << 13,
                            sample_id_all_bit = 1 << 18, mmap2_bit = 1 << 23, comm_exec_bit = 1 << 24,
                            use_clock_bit = 1 << 25, ksymbol_bit = 1 << 29;
    const std::uint64_t flags = mmap_bit | comm_bit | task_bit | sample_id_all_bit | mmap2_bit | comm_exec_bit |
                                use_clock_bit | ksymbol_bit | (frequency ? freq_bit : 0);
    constexpr std::uint64_t what = perf::sample::identifier | perf::sample::ip | perf::sample::tid |
                                   perf::sample::time | perf::sample::cpu | perf::sample::period |
                                   perf::sample::callchain;
    constexpr std::uint32_t monotonic = 1;  // CLOCK_MONOTONIC
    const std::size_t begin = out.size();
    out.u32(type).u32(attribute_size).u64(config).u64(frequency ? hz : std::max<std::uint64_t>(about.period, 1));
    out.u64(what).u64(0).u64(flags);
    out.u64(0).u64(0).u64(0);  // wakeup, breakpoint type, config1, config2
    out.u64(0).u64(0).u32(0).u32(monotonic);
    out.bytes(std::string(attribute_size - (out.size() - begin), '\0'));
}

std::string Export::build_ids() const {
    constexpr std::size_t id_room = 20;
    Output out;
    for (const ExportedArea& area : addresses_.areas()) {
        if (area.module == 0) continue;
        const symbol::ModuleIdentity& identity = tables_.modules[area.module].identity;
        const std::string id = identity.build_id.substr(0, id_room);
        if (id.empty()) continue;
        Output body;
        body.u32(0xffff'ffff).bytes(id).bytes(std::string(id_room - id.size(), '\0'));
        body.u8(static_cast<std::uint8_t>(id.size())).u8(0).u16(0).padded(identity.path.substr(0, 4096), 64);
        out.u32(0)
            .u16(perf::misc::user | tool_misc::build_id_size)
            .u16(static_cast<std::uint16_t>(perf::header_size + body.size()));
        out.bytes(body.text());
    }
    return out.take();
}

std::string Export::event_names() const {
    Output out;
    out.u32(static_cast<std::uint32_t>(events_.size())).u32(attribute_size);
    for (const EventId event : events_) {
        put_attribute(out, event);
        out.u32(1).counted(tables_.events[event].name).u64(event);
    }
    return out.take();
}

std::vector<std::pair<unsigned, std::string>> Export::features() const {
    std::vector<std::pair<unsigned, std::string>> features;
    const wire::Recording about = store_.recording().value_or(wire::Recording{});
    const auto text = [&](unsigned number, const std::string& value) {
        if (!value.empty()) features.emplace_back(number, Output().counted(value).take());
    };
    features.emplace_back(feature::build_id, build_ids());
    text(feature::hostname, about.host);
    text(feature::os_release, about.kernel_release);
    text(feature::version, about.agent_version);
    text(feature::arch, about.arch);
    if (about.cpus != 0) features.emplace_back(feature::cpus, Output().u32(about.cpus).u32(about.cpus).take());
    text(feature::command_line, about.target);
    if (!about.target.empty()) features.back().second.insert(0, Output().u32(1).take());
    features.emplace_back(feature::event_desc, event_names());
    if (!rows_.empty()) {
        const std::uint64_t first = rows_.front().sample.time_ns;
        features.emplace_back(feature::sample_time, Output().u64(first).u64(rows_.back().sample.time_ns).take());
        if (options_.started_ns > 0)
            features.emplace_back(
                feature::clock_data,
                Output().u32(1).u32(1).u64(static_cast<std::uint64_t>(options_.started_ns)).u64(first).take());
    }
    EmbeddedSymbols embedded;
    for (const EventId event : events_)
        embedded.events.push_back({tables_.events[event].name, tables_.events[event].unit});
    embedded.functions = addresses_.functions();
    features.emplace_back(feature::embedded_symbols, encode_embedded_symbols(embedded));
    return features;
}

std::string Export::file(const std::string& records) const {
    Output ids, attributes;
    for (const EventId event : events_) {
        put_attribute(attributes, event);
        attributes.u64(file_header_size + ids.size()).u64(8);
        ids.u64(event);
    }
    const auto features = this->features();
    const std::uint64_t attributes_at = file_header_size + ids.size(), data_at = attributes_at + attributes.size();
    std::array<std::uint64_t, feature::count / 64> bits{};
    Output table;
    std::uint64_t place = data_at + records.size() + features.size() * 16;
    for (const auto& [number, content] : features) {
        bits[number / 64] |= std::uint64_t{1} << (number % 64);
        table.u64(place).u64(content.size());
        place += content.size();
    }
    Output out;
    constexpr std::string_view magic = std::endian::native == std::endian::little ? "PERFILE2" : "2ELIFREP";
    out.bytes(magic).u64(file_header_size).u64(attribute_size + 16);
    out.u64(attributes_at).u64(attributes.size()).u64(data_at).u64(records.size()).u64(0).u64(0);
    for (const std::uint64_t word : bits) out.u64(word);
    out.bytes(ids.text()).bytes(attributes.text()).bytes(records).bytes(table.text());
    for (const auto& [number, content] : features) out.bytes(content);
    return out.take();
}

}  // namespace

Result<std::string> perf_data_file(const Store& store, const Filter& filter, const ExportOptions& options) {
    return Export(store, filter, options).write();
}

}  // namespace flamewire::profile::perf_data
