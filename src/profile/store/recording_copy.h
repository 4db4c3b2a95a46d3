// Copies batches of one or several recordings into batches of a new one: all rows, or those in a window of time, with
// everything that they refer to. Addresses stay addresses of their modules, so better symbols can still improve them.
// Pure: batches in, batches out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "base/result.h"
#include "recording/epoch_tables.h"
#include "wire/batch.h"

namespace flamewire::profile {

// A recording to copy, and which part of it. Times are CLOCK_MONOTONIC ns of its target.
struct CopySource {
    std::uint64_t start_ns = 0;  // copies rows, changes, counters and losses from this time on, …
    std::uint64_t end_ns = std::numeric_limits<std::uint64_t>::max();  // … and before this
    std::int64_t shift_ns = 0;                                         // added to every time that is copied
    std::int64_t realtime_ns = 0;  // the wall clock at time 0 of the copy; 0: as the batches state
    std::uint32_t apart = 0;       // not 0: from another machine or boot than the others; processes and kernels of
                                   // different numbers are never merged
    bool counters = true;          // whether to copy counters too
    std::optional<wire::Recording> about = std::nullopt;  // replaces the description in the batches
};

class RecordingCopy {
public:
    // Receives the batches in order. An error that it returns ends the copy with that error.
    using Sink = std::function<Result<bool>(wire::Batch batch)>;

    RecordingCopy(const wire::RecordingId& id, Sink sink) : id_(id), sink_(std::move(sink)) {}

    // Everything that is added from now on belongs to this recording.
    void begin(CopySource source);
    // Call with the batches of a recording in order of seq. invalid: the batch refers to an entry that was never sent.
    // That batch is skipped, and the caller may add the next one.
    Result<bool> add(const wire::Batch& batch);
    void note(std::string code, std::string text);
    // Writes the last batch. It is closed at `closed_ns`, in the copy's time.
    Result<bool> finish(std::string reason, std::uint64_t closed_ns);

    [[nodiscard]] std::uint64_t rows() const { return rows_; }

private:
    // The tables of one epoch as they came, and the copy's id of each entry that was needed so far (0: not needed yet).
    template <class Entry>
    struct Table {
        std::vector<Entry> entries{1};
        std::vector<wire::Id> copied{0};
        void extend(wire::Id base, const std::vector<Entry>& more);
        // The copy's id of an entry. translate(entry) replaces the ids in it when it is first needed.
        template <class Translate>
        wire::Id copy(wire::Id id, recording::Table<Entry>& to, Translate translate);
    };
    struct Tables {
        Table<std::string> strings;
        Table<wire::Module> modules;
        Table<wire::Location> locations;
        Table<wire::StackNode> stacks;
        Table<wire::Process> processes;
        Table<wire::Thread> threads;
        Table<wire::Event> events;
    };
    using ProcessKey = std::tuple<std::uint32_t, std::uint64_t, std::uint32_t>;

    void begin_epoch(const wire::Batch& batch);
    template <class Visit>
    bool each_table(const wire::Batch& batch, Visit visit);
    [[nodiscard]] bool refers_to_known(const wire::Batch& batch) const;
    [[nodiscard]] bool in_window(std::uint64_t time_ns) const {
        return time_ns >= source_.start_ns && time_ns < source_.end_ns;
    }
    [[nodiscard]] std::uint64_t shifted(std::uint64_t time_ns) const;

    wire::Id string(wire::Id id);
    wire::Id module(wire::Id id);
    wire::Id location(wire::Id id);
    wire::Id stack(wire::Id id);
    wire::Id process(wire::Id id);
    wire::Id thread(wire::Id id);
    wire::Id event(wire::Id id);

    Result<bool> add_rows(const wire::Batch& batch);
    void add_hits(const wire::Hits& hits, bool with_dropped);
    void add_lifecycle(const wire::Lifecycle& change);
    void add_losses(const wire::Batch& batch);
    void add_unwinds(const wire::Batch& batch);
    void add_counters(const wire::CounterReading& reading);
    Result<bool> flush(std::uint64_t closed_ns);
    [[nodiscard]] std::size_t pending() const;

    const wire::RecordingId id_;
    const Sink sink_;
    CopySource source_;

    std::uint32_t source_epoch_ = 0;  // 0: none yet
    Tables tables_;
    std::optional<wire::Recording> recording_;
    bool recording_changed_ = false;
    std::map<ProcessKey, wire::ProcessUnwind> before_;  // state before the window

    wire::Batch out_;  // without its tables
    recording::EpochTables out_tables_;
    std::uint32_t epoch_ = 0;
    std::uint64_t seq_ = 0, rows_ = 0, newest_ns_ = 0;
    std::int64_t realtime_minus_monotonic_ns_ = 0;
};

}  // namespace flamewire::profile
