// Reading the text files of /proc with bounded memory: a line at a time, fields and numbers off the front of a line.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "base/result.h"

namespace flamewire::agent {

// Lines of a file, through one buffer. A line longer than the buffer is cut to the buffer's size, its rest skipped.
class LineReader {
public:
    LineReader(UniqueFd fd, std::size_t buffer_bytes) : fd_(std::move(fd)), buffer_(buffer_bytes, '\0') {}
    static Result<LineReader> open(const std::string& path, std::size_t buffer_bytes);

    // False at the end of the file or after a read error (failed() tells). The view is valid until the next call.
    bool next(std::string_view& line);
    [[nodiscard]] bool failed() const { return errno_value_ != 0; }
    [[nodiscard]] int errno_value() const { return errno_value_; }

private:
    bool fill();
    bool skip_rest_of_line();

    UniqueFd fd_;
    std::string buffer_;
    std::size_t begin_ = 0, end_ = 0;
    bool at_end_ = false;
    bool cut_ = false;  // the last line was cut: its rest is still to be skipped
    int errno_value_ = 0;
};

// The number at the front of `text`, taken off it; nothing when there is none or it does not fit. All of /proc is read
// as 64 bits: a 32-bit agent sees big addresses and inodes too.
std::optional<std::uint64_t> take_number(std::string_view& text, int base);
// Leading blanks, then everything to the next blank, taken off `text`.
std::string_view take_field(std::string_view& text);
// `expected` off the front of `text`; false, and nothing taken, when something else is there.
bool take_char(std::string_view& text, char expected);

// The first `limit` bytes of a file; not_found, permission, … as open_read. For files whose tail we can do without.
Result<std::string> read_head(const std::string& path, std::size_t limit);
// The same of a file of /proc that is one record (stat, status, cgroup, cmdline, comm): a read that is not filled is its
// last, so that most are read by one.
Result<std::string> read_record(const std::string& path, std::size_t limit);
// Where a symbolic link points; cut at 4,096 bytes.
Result<std::string> read_link(const std::string& path);

// Names in a directory that are numbers, for example pids in /proc. Empty if it cannot be read.
std::vector<std::uint32_t> list_numbers(const std::string& path, std::size_t most);

// `root`/`pid`/`name`, as in /proc/42/maps.
std::string proc_path(const std::string& root, std::uint32_t pid, std::string_view name);

}  // namespace flamewire::agent
