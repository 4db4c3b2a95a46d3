// jit-PID.dump, in which JIT compilers describe their code: the time of each change, lines, and the code itself. A
// header is followed by records. Source of the format: tools/perf/Documentation/jitdump-specification.txt of the
// kernel.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "agent/process/jit_file.h"
#include "base/bytes.h"

namespace flamewire::agent {

// "…/jit-4242.dump": the program maps the first page of the file as executable, so that a profiler finds the file.
bool is_jitdump_name(std::string_view path);

class JitdumpFile {
public:
    explicit JitdumpFile(UniqueFd file) : file_(std::move(file)) {}

    // Reads records for up to about `limit` bytes (skipped code does not count). An incomplete record at the end is
    // left for the next call.
    JitProgress advance(std::size_t limit, const PollTimes& times, std::vector<JitEntry>& entries);
    // The arguments come from an entry.
    [[nodiscard]] std::optional<JitBody> body_of(std::uint64_t record, std::uint64_t lines,
                                                 std::uint64_t unwinding) const;
    [[nodiscard]] int fd() const { return file_.get(); }

private:
    bool read_header();
    void take_record(std::uint32_t kind, std::uint64_t from_ns, Bytes fields, std::vector<JitEntry>& entries);
    [[nodiscard]] Bytes at(std::uint64_t offset, std::size_t size);
    void add_lines(std::uint64_t lines, JitBody& body) const;
    void add_rules(std::uint64_t unwinding, std::uint64_t size, JitBody& body) const;

    UniqueFd file_;
    std::uint64_t position_ = 0;  // of the next record; 0: before the header
    bool own_clock_ = false;      // times are CLOCK_MONOTONIC
    std::optional<unwind::Arch> arch_;
    // The last line table: it precedes the code to which it belongs.
    std::uint64_t lines_code_ = 0, lines_record_ = 0;
    std::uint64_t unwinding_record_ = 0;  // of the code that follows
    std::string window_;                  // part of the file, from window_offset_
    std::uint64_t window_offset_ = 0;
};

}  // namespace flamewire::agent
