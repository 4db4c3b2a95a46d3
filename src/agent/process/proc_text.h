// Reads the text files of /proc with bounded memory: one line at a time, with fields and numbers taken off its front.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "base/result.h"

namespace flamewire::agent {

// Lines of a file, through one buffer. A line longer than the buffer is cut to the buffer's size, and the rest is
// skipped.
class LineReader {
public:
    LineReader(UniqueFd fd, std::size_t buffer_bytes) : fd_(std::move(fd)), buffer_(buffer_bytes, '\0') {}
    static Result<LineReader> open(const std::string& path, std::size_t buffer_bytes);

    // False at the end of the file or after a read error (see failed()). The view is valid until the next call.
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
    bool cut_ = false;  // the last line was cut: the rest must still be skipped
    int errno_value_ = 0;
};

// Removes the number at the front of `text`; nothing if there is none or it does not fit. Numbers are always 64-bit: a
// 32-bit agent also encounters large addresses and inodes.
std::optional<std::uint64_t> take_number(std::string_view& text, int base);
// Removes leading blanks and everything up to the next blank from `text`; returns the latter.
std::string_view take_field(std::string_view& text);
// Removes `expected` from the front of `text`; false, with no change, if something else is there.
bool take_char(std::string_view& text, char expected);

// The first `limit` bytes of a file; errors such as not_found and permission as for open_read. For files whose tail is
// not needed.
Result<std::string> read_head(const std::string& path, std::size_t limit);
// The same for a file of /proc that is one record (stat, status, cgroup, cmdline, comm). A short read ends it, so most
// files need a single read.
Result<std::string> read_record(const std::string& path, std::size_t limit);
// The target of a symbolic link; cut at 4,096 bytes.
Result<std::string> read_link(const std::string& path);

// Names in a directory that are numbers, for example pids in /proc. Empty if the directory is not readable.
std::vector<std::uint32_t> list_numbers(const std::string& path, std::size_t most);

// `root`/`pid`/`name`, as in /proc/42/maps.
std::string proc_path(const std::string& root, std::uint32_t pid, std::string_view name);

}  // namespace flamewire::agent
