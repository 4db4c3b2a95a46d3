// A small recording for tests: batches of one process with one thread, two events, and unresolvable addresses of one
// module. The sums are easy to compute: batch n has 2 rows of "cycles" (3 samples of weight 10, 1 of weight 10) and 1
// row of "faults" (1 of weight 1). unwind() counts stacks as for addresses without unwind tables.
#pragma once

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "wire/batch.h"
#include "wire/frame.h"
#include "wire/session_file.h"

namespace flamewire::test {

inline constexpr std::uint64_t start_ns = 5'000'000'000;            // bucket 500
inline constexpr std::int64_t arrival = 1'800'000'000'000'000'000;  // arrival at the server, CLOCK_REALTIME

inline std::string content(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

inline wire::RecordingId recording_id(std::uint8_t first) {
    wire::RecordingId id{};
    id[0] = first;
    id[15] = 7;
    return id;
}

class RecordingScene {
public:
    explicit RecordingScene(std::uint8_t first = 0xAB) : id_(recording_id(first)) {}

    // The next batch. The first one of an epoch carries the tables.
    wire::Batch batch() {
        wire::Batch batch;
        batch.recording_id = id_;
        batch.epoch = epoch_;
        batch.seq = ++seq_;
        batch.monotonic_ns = start_ns + seq_ * 250'000'000;
        batch.realtime_ns = 1'700'000'000'000'000'000 + static_cast<std::int64_t>(batch.monotonic_ns);
        if (!tables_sent_) add_tables(batch);
        const std::uint64_t bucket = 500 + (seq_ - 1) * 25;
        batch.rows = {{bucket, 1, 1, 0, 2, 3, 30}, {bucket + 1, 1, 1, 1, 1, 1, 10}, {bucket, 2, 1, 0, 1, 1, 1}};
        batch.unwinds = {unwind()};
        return batch;
    }
    wire::Frame frame(wire::Batch batch) {
        wire::learn_periods(batch, periods_);
        return wire::batch_frame(wire::encode(batch, periods_));
    }
    wire::Frame next() { return frame(batch()); }
    wire::Frame last() {
        wire::Batch end = batch();
        end.end = wire::End{"stopped", 0};
        return frame(end);
    }
    // The next batch starts a new epoch with empty tables.
    void new_epoch() {
        ++epoch_;
        tables_sent_ = false;
        periods_.clear();
    }
    void skip(std::uint64_t batches) { seq_ += batches; }
    [[nodiscard]] const wire::RecordingId& id() const { return id_; }

private:
    // After n batches: 5n samples, of which 2n are joined, n truncated, and the rest whole.
    [[nodiscard]] wire::ProcessUnwind unwind() const {
        wire::ProcessUnwind unwind;
        unwind.process = 1;
        unwind.mode = wire::StackMode::dwarf;
        unwind.why = "no frame pointers";
        unwind.samples = 5 * seq_;
        unwind.whole = unwind.joined = 2 * seq_;
        unwind.truncated = seq_;
        unwind.frames = 9 * seq_;
        unwind.stack_bytes = 5 * 16384 * seq_;
        return unwind;
    }

    void add_tables(wire::Batch& batch) {
        tables_sent_ = true;
        wire::Recording recording;
        recording.target = "pid 42 (demo)";
        recording.pids = {42};
        recording.host = "board";
        recording.arch = "x86_64";
        recording.kernel_release = "6.1";
        recording.agent_version = "1";
        recording.boot_id = "another";
        recording.frequency_hz = 99;
        recording.unwind = "auto";
        recording.stack_bytes = 16384;
        recording.max_depth = 1024;
        recording.interval_ms = 250;
        recording.start_ns = start_ns;
        batch.recording = recording;
        batch.strings = {"/no/such/demo-program", "demo", "cycles", "faults"};
        batch.modules = {{wire::ModuleKind::file, 1, "\x01\x02", 0, 0, 0, 0}};
        batch.locations = {{1, 0x1000, 0, 0, 0, 0}, {1, 0x2000, wire::location_flag::return_address, 0, 0, 0}};
        batch.stacks = {{0, 2}, {1, 1}};  // outer 0x2000, inner 0x1000
        batch.processes = {{42, 0, 1, 100, 0, 2, 1, 0, 0, 0}};
        batch.threads = {{1, 43, 2}};
        batch.events = {{3, 3, 99, 10}, {4, 4, 0, 1}};
    }

    wire::RecordingId id_;
    std::uint32_t epoch_ = 1;
    std::uint64_t seq_ = 0;
    bool tables_sent_ = false;
    wire::EventPeriods periods_;
};

// A directory that is deleted at the end of the scope.
class ScratchDirectory {
public:
    ScratchDirectory() {
        std::string pattern = (std::filesystem::temp_directory_path() / "flamewire-unit.XXXXXX").string();
        path_ = ::mkdtemp(pattern.data());
    }
    ~ScratchDirectory() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
    ScratchDirectory(const ScratchDirectory&) = delete;
    ScratchDirectory& operator=(const ScratchDirectory&) = delete;
    [[nodiscard]] std::string operator/(const std::string& name) const { return (path_ / name).string(); }
    [[nodiscard]] std::string path() const { return path_.string(); }

private:
    std::filesystem::path path_;
};

}  // namespace flamewire::test
