// A day of recording as an agent sends it: four batches per second with samples of four threads at 99 Hz, ten counters
// every second, processes that start and exit, occasional losses, and health frames every two seconds. Each run creates
// the same data.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "synthetic_program.h"
#include "wire/batch.h"
#include "wire/frame.h"

namespace flamewire::bench {

inline constexpr std::uint64_t ns_per_s = 1'000'000'000;

class RecordedDay {
public:
    static constexpr std::uint64_t start_ns = 3'600 * ns_per_s;  // CLOCK_MONOTONIC: the target booted an hour ago
    static constexpr std::uint32_t threads = 4, usual_frequency_hz = 99;
    static constexpr std::size_t stacks = 600;
    static constexpr std::array<const char*, 10> counters{
        "task-clock",   "context-switches", "cpu-migrations", "page-faults",      "cycles",
        "instructions", "branches",         "branch-misses",  "cache-references", "cache-misses"};

    explicit RecordedDay(std::uint32_t frequency_hz = usual_frequency_hz);

    [[nodiscard]] const wire::RecordingId& recording_id() const { return program_.tables().recording_id; }
    // The batch with the tables to which all others refer.
    wire::Frame tables();
    static constexpr std::uint64_t batches_per_s = 4;
    // To be called in order, from 0. The last batch of a second contains its counters.
    wire::Frame batch(std::uint64_t number);
    // One frame of each type, for the end of this second.
    [[nodiscard]] std::vector<wire::Frame> health(std::uint64_t number) const;

    // The totals of everything sent so far.
    struct Sent {
        std::uint64_t samples = 0, begins = 0, exits = 0, lost = 0, instructions = 0;
    };
    [[nodiscard]] const Sent& sent() const { return sent_; }

private:
    wire::Frame frame(wire::Batch& batch);
    void add_second(wire::Batch& batch, std::uint64_t number);
    void add_processes(wire::Batch& batch, std::uint64_t number);
    void add_counters(wire::Batch& batch, std::uint64_t number);

    std::uint32_t frequency_hz_;
    Program program_;
    wire::EventPeriods periods_;
    Sent sent_;
    std::uint64_t seq_ = 0;
    wire::Id first_counter_ = 0, unit_ = 0;  // strings
    wire::Id next_string_ = 0, next_process_ = 0, next_thread_ = 0;
};

}  // namespace flamewire::bench
