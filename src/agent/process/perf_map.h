// /tmp/perf-PID.map, in which JIT compilers name their code, read while it grows. Lines are only ever added
// (elf/perf_map_line.h), so where the code of a function lay another one may follow.
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

    // Reads up to about `limit` bytes and appends the entries of whole lines. What was there at the first look has
    // from_ns 0.
    JitProgress advance(std::size_t limit, const LookTimes& times, std::vector<JitEntry>& entries);
    [[nodiscard]] std::optional<JitBody> body_of(std::uint64_t record) const;
    [[nodiscard]] int fd() const { return file_.get(); }

private:
    bool still_the_same();
    void take_lines(std::uint64_t from_ns, std::vector<JitEntry>& entries);

    UniqueFd file_;
    std::uint64_t position_ = 0;                  // behind the last whole line that was read
    std::optional<std::uint64_t> size_at_first_;  // nothing: not looked at yet
    std::string before_;  // the last bytes before position_, to see that they are still the same
    std::string buffer_;
    bool inside_long_line_ = false;
    // The last look that went to the end: nothing was written since then as long as these are the same.
    std::uint64_t end_size_ = 0;
    std::int64_t end_modified_ns_ = 0;
};

}  // namespace flamewire::agent
