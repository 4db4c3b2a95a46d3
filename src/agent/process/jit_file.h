// What the files share in which a program says what code it made while running: entries in the order in which they were
// written, read as the files grow.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "unwind/tables/function_rules.h"

namespace flamewire::agent {

// A function as the file names it, read when its code was sampled.
struct JitBody {
    struct Row {
        std::uint32_t offset = 0;  // from `start`; holds up to the next row
        std::uint32_t line = 0;
        std::uint32_t file = 0;  // index into files
    };
    std::uint64_t start = 0;  // where its code begins in memory
    std::string name;
    std::vector<std::string> files;
    std::vector<Row> rows;        // ascending; empty: lines are not known
    unwind::FunctionRules rules;  // offsets from `start`
};

// One entry: from `from_ns` on, [start, end) is what the file says at `record`.
struct JitEntry {
    std::uint64_t start = 0, end = 0;
    std::uint64_t from_ns = 0;     // CLOCK_MONOTONIC; 0: since before we looked
    std::uint64_t record = 0;      // place in the file
    std::uint64_t lines = 0;       // place of its line table in the file; 0: none
    std::uint64_t unwinding = 0;   // place of its unwinding information; 0: none
    std::uint64_t moved_from = 0;  // not 0: the code that was there is what lies here now; no place means anything
};

// When the end of a file was written. Its clock may be another machine's, so it is kept between two looks of ours.
struct LookTimes {
    std::uint64_t previous_ns = 0, now_ns = 0;  // CLOCK_MONOTONIC
    std::int64_t realtime_ns = 0;               // the same moment as now_ns
    [[nodiscard]] std::uint64_t monotonic_of(std::int64_t realtime) const;
};

// How far one advance() went.
enum class JitProgress {
    more,       // there is more to read
    at_end,     // all that was whole is read
    rewritten,  // the file is another one than what was read of it: begin anew
    damaged,    // it is no such file
};

// Names longer than this are cut.
inline constexpr std::size_t max_jit_name_bytes = 2048;

// Bytes [offset, offset + size) of a file, fewer at its end; the buffer is used again.
bool read_piece(int fd, std::uint64_t offset, std::size_t size, std::string& buffer);

}  // namespace flamewire::agent
