#include "profile/formats/recording_builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <utility>

#include "base/radix_sort.h"
#include "profile/store/model.h"

namespace flamewire::profile {
namespace {

// Keeps a batch below every limit of the wire format, whatever is added next: one stack adds at most a few thousand
// entries.
constexpr std::size_t enough_rows = std::size_t{1} << 17, enough_entries = std::size_t{1} << 17;
constexpr std::size_t enough_text = std::size_t{8} << 20;

// Sums of two weights below this cannot overflow.
constexpr std::uint64_t large_weight = std::uint64_t{1} << 62;

bool add_up(wire::Row& into, const wire::Row& row) {
    if (into.stack != row.stack || into.bucket != row.bucket || into.thread != row.thread || into.event != row.event ||
        into.cpu != row.cpu || into.count > std::numeric_limits<std::uint32_t>::max() - row.count ||
        into.weight >= large_weight || row.weight >= large_weight)
        return false;
    into.count += row.count;
    into.weight += row.weight;
    return true;
}

// Sorts rows into wire order and adds up equal ones. encode() would also do this, at many times the cost. If the fields
// do not fit a 64-bit key, the rows stay as they are.
void sort_rows(std::vector<wire::Row>& rows) {
    std::uint64_t first_bucket = std::numeric_limits<std::uint64_t>::max(), last_bucket = 0;
    wire::Row all;
    for (const wire::Row& row : rows) {
        first_bucket = std::min(first_bucket, row.bucket);
        last_bucket = std::max(last_bucket, row.bucket);
        all.event |= row.event;
        all.thread |= row.thread;
        all.cpu |= row.cpu;
        all.stack |= row.stack;
    }
    if (rows.empty()) return;
    const auto bits = [](std::uint64_t value) { return static_cast<unsigned>(std::bit_width(value)); };
    const unsigned thread_bits = bits(all.thread), cpu_bits = bits(all.cpu), stack_bits = bits(all.stack),
                   bucket_bits = bits(last_bucket - first_bucket);
    const unsigned key_bits = bits(all.event) + thread_bits + cpu_bits + stack_bits + bucket_bits;
    if (key_bits > 64) return;
    std::vector<KeyedIndex> order, scratch;
    order.reserve(rows.size());
    for (const wire::Row& row : rows) {
        std::uint64_t key = row.event;
        key = key << thread_bits | row.thread;
        key = key << cpu_bits | row.cpu;
        key = key << stack_bits | row.stack;
        // A span of 64 bits leaves no room for other fields.
        key = (bucket_bits < 64 ? key << bucket_bits : 0) | (row.bucket - first_bucket);
        order.push_back({key, narrow32(order.size())});
    }
    radix_sort(order, scratch, key_bits);
    std::vector<wire::Row> sorted;
    sorted.reserve(rows.size());
    for (const KeyedIndex& one : order)
        if (sorted.empty() || !add_up(sorted.back(), rows[one.index])) sorted.push_back(rows[one.index]);
    rows = std::move(sorted);
}

}  // namespace

RecordingBuilder::RecordingBuilder(const wire::RecordingId& id, wire::Recording about, std::int64_t realtime_ns,
                                   Sink sink)
    : id_(id), realtime_ns_(realtime_ns), start_ns_(about.start_ns), sink_(std::move(sink)), tables_(hash_seed()) {
    batch_.recording = std::move(about);
}

wire::Id RecordingBuilder::string(std::string_view text) {
    const wire::Id id = strings_.intern(text);
    if (id == tables_.strings.next()) {
        tables_.strings.add(std::string(text));
        unsent_text_ += text.size();
    }
    return id;
}

wire::Id RecordingBuilder::event(std::string_view name, std::string_view unit) {
    const auto [entry, added] = events_.try_emplace({std::string(name), std::string(unit)}, 0);
    if (added) entry->second = tables_.events.add({string(name), string(unit), 0, 0});
    return entry->second;
}

wire::Id RecordingBuilder::module(wire::ModuleKind kind, std::string_view path, std::string_view build_id) {
    const auto [entry, added] = modules_.try_emplace({kind, std::string(path), std::string(build_id)}, 0);
    if (added) {
        wire::Module module;
        module.kind = kind;
        module.path = string(path);
        module.build_id = build_id;
        entry->second = tables_.modules.add(std::move(module));
    }
    return entry->second;
}

wire::Id RecordingBuilder::thread(std::uint32_t pid, std::uint32_t tid, std::string_view comm) {
    const auto [entry, added] = threads_.try_emplace({pid, tid, std::string(comm)}, 0);
    if (!added) return entry->second;
    const auto known = processes_.find(pid);
    wire::Process about;
    about.pid = pid;
    about.comm = string(comm);
    const wire::Id of = known != processes_.end() ? known->second : process(about);
    return entry->second = tables_.threads.add({of, tid, string(comm)});
}

wire::Id RecordingBuilder::process(const wire::Process& process) {
    // Later threads belong to the new process, even if they have the name of a thread of an older process with this
    // pid.
    if (processes_.contains(process.pid)) {
        const auto first = threads_.lower_bound({process.pid, 0, {}});
        threads_.erase(first, std::find_if(first, threads_.end(),
                                           [&](const auto& entry) { return std::get<0>(entry.first) != process.pid; }));
    }
    return processes_[process.pid] = tables_.processes.add(process);
}

wire::Id RecordingBuilder::location(const Name& name) {
    return tables_.location({name.module, 0, name.flags, string(name.function), string(name.file), name.line});
}

wire::Id RecordingBuilder::stack(wire::Id parent, wire::Id location) {
    if (is_full(parent)) {
        ++too_deep_;
        return parent;
    }
    const wire::Id id = tables_.stack(parent, location);
    if (id == depths_.size()) depths_.push_back(static_cast<std::uint16_t>(depths_[parent] + 1));
    return id;
}

Result<bool> RecordingBuilder::add(const wire::Row& row) {
    batch_.rows.push_back(row);
    ++row_count_;
    return give_if_enough();
}

Result<bool> RecordingBuilder::give_if_enough() {
    const std::size_t entries =
        tables_.unsent_count() + batch_.lifecycle.size() + batch_.losses.size() + batch_.symbols.size();
    if (batch_.rows.size() < enough_rows && entries < enough_entries) {
        // The size of strings is checked only occasionally.
        if (batch_.rows.size() % 1024 != 0 || unsent_text_ < enough_text) return true;
    }
    return flush();
}

void RecordingBuilder::note(std::string code, std::string text, std::string remedy) {
    batch_.notices.push_back({std::move(code), std::move(text), std::move(remedy)});
}

Result<bool> RecordingBuilder::flush() {
    wire::Batch batch = std::exchange(batch_, {});
    sort_rows(batch.rows);
    batch.recording_id = id_;
    batch.epoch = epoch_;
    batch.seq = batch.first_seq = ++seq_;
    std::uint64_t newest = start_ns_;
    for (const wire::Row& row : batch.rows)
        newest = std::max(newest, (row.bucket + 1) * std::uint64_t{wire::default_bucket_ns});
    batch.monotonic_ns = newest;
    batch.realtime_ns = realtime_ns_ + static_cast<std::int64_t>(newest - start_ns_);

    tables_.flush(batch);
    unsent_text_ = 0;
    return sink_(std::move(batch));
}

void RecordingBuilder::begin_epoch() {
    ++epoch_;
    tables_ = recording::InternedTables(hash_seed());
    strings_ = StringTable();
    unsent_text_ = 0;
    depths_.assign(1, 0);
    events_.clear();
    modules_.clear();
    threads_.clear();
    processes_.clear();
}

Result<bool> RecordingBuilder::finish(std::string reason) {
    if (too_deep_ > 0)
        note("import-deep", fmt::format("Some stacks have more than {} frames: what is called further in is left out.",
                                        max_stack_depth));
    batch_.end = wire::End{std::move(reason), 0};
    return flush();
}

}  // namespace flamewire::profile
