// /tmp/perf-PID.map, in which JIT compilers name their code, read while it grows. Lines are only ever appended
// (elf/perf_map_line.h), so a later function may occupy the address range of an earlier one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "agent/process/jit_file.h"

namespace flamewire::agent {

class PerfMapFile {
public:
    explicit PerfMapFile(UniqueFd file) : file_(std::move(file)) {}

    // Reads up to about `limit` bytes and appends the entries of complete lines. Entries that existed at the first poll
    // have from_ns 0.
    JitProgress advance(std::size_t limit, const PollTimes& times, std::vector<JitEntry>& entries);
    [[nodiscard]] std::optional<JitBody> body_of(std::uint64_t record) const;
    [[nodiscard]] int fd() const { return file_.get(); }

private:
    bool still_the_same();
    void take_lines(std::uint64_t from_ns, std::vector<JitEntry>& entries);

    UniqueFd file_;
    std::uint64_t position_ = 0;                  // end of the last complete line that was read
    std::optional<std::uint64_t> size_at_first_;  // nothing: before the first poll
    std::string before_;                          // the last bytes before position_, to verify that they are unchanged
    std::string buffer_;
    bool inside_long_line_ = false;
    // State at the last poll that reached the end: if unchanged, nothing was written since.
    std::uint64_t end_size_ = 0;
    std::int64_t end_modified_ns_ = 0;
};

}  // namespace flamewire::agent
