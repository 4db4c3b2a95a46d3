// Common parts of the files in which a program describes the code that it generates at run time: entries in the order
// of writing, read as the files grow.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "unwind/tables/function_rules.h"

namespace flamewire::agent {

// A function as described in the file, read once its code was sampled.
struct JitBody {
    struct Row {
        std::uint32_t offset = 0;  // from `start`; valid up to the next row
        std::uint32_t line = 0;
        std::uint32_t file = 0;  // index into files
    };
    std::uint64_t start = 0;  // start address of its code in memory
    std::string name;
    std::vector<std::string> files;
    std::vector<Row> rows;        // ascending; empty: lines are unknown
    unwind::FunctionRules rules;  // offsets from `start`
};

// One entry: from `from_ns` on, [start, end) is the function that the file describes at `record`.
struct JitEntry {
    std::uint64_t start = 0, end = 0;
    std::uint64_t from_ns = 0;     // CLOCK_MONOTONIC; 0: since before the first poll
    std::uint64_t record = 0;      // position in the file
    std::uint64_t lines = 0;       // position of its line table in the file; 0: none
    std::uint64_t unwinding = 0;   // position of its unwinding information; 0: none
    std::uint64_t moved_from = 0;  // if not 0, the code moved from there to here, and the positions are invalid
};

// Converts the time of the last write to a file. That clock may be another machine's, so the result is limited to the
// time between two polls.
struct PollTimes {
    std::uint64_t previous_ns = 0, now_ns = 0;  // CLOCK_MONOTONIC
    std::int64_t realtime_ns = 0;               // the same time as now_ns
    [[nodiscard]] std::uint64_t monotonic_of(std::int64_t realtime) const;
};

// Result of one advance().
enum class JitProgress {
    more,       // there is more to read
    at_end,     // all complete entries were read
    rewritten,  // the file no longer matches what was read: start again
    damaged,    // the file has another format
};

// Longer names are cut.
inline constexpr std::size_t max_jit_name_bytes = 2048;

// Reads bytes [offset, offset + size) of a file, fewer at its end; reuses `buffer`.
bool read_piece(int fd, std::uint64_t offset, std::size_t size, std::string& buffer);

}  // namespace flamewire::agent
