// A session on disk: 8 bytes magic, u32 little-endian version, then records: i64 little-endian arrival time
// (CLOCK_REALTIME, ns), then one wire frame as received (frame.h). A file that was cut anywhere is valid up to its last
// whole record; a record header of nothing but zeros is a tail that was never written. The agent's --output writes the
// same file.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/fd.h"
#include "base/result.h"
#include "wire/frame.h"

namespace flamewire::wire {

inline constexpr std::string_view session_magic = "FLMWIRE\n";
inline constexpr std::uint32_t session_version = 1;
inline constexpr std::size_t session_header_bytes = 12;
inline constexpr std::size_t record_header_bytes = 8 + header_bytes;

std::string session_header();
std::string encode_record(std::int64_t arrival_ns, Flag flag, std::string_view payload);

// Appends records to a file or a pipe. A failed append (disk full) leaves the file as it was before it where it can be
// truncated; where it cannot (a pipe), every later append fails too. A pipe without reader raises SIGPIPE unless the
// program ignores it.
class SessionWriter {
public:
    // A new file at `path`; fails when it exists.
    static Result<SessionWriter> create(const std::string& path);
    // An existing file, whose torn tail (if any) is cut first. invalid when it is no session file, or when anything but the
    // beginning of one record would be cut.
    static Result<SessionWriter> append_to(const std::string& path);
    // Anything writable: a pipe, stdout. Writes the header. What stands there already is never cut.
    static Result<SessionWriter> to_descriptor(UniqueFd fd);

    Result<std::size_t> append(std::int64_t arrival_ns, Flag flag, std::string_view payload);
    // fdatasync; nothing for a pipe.
    Result<bool> sync();
    [[nodiscard]] std::uint64_t size_bytes() const { return size_; }
    [[nodiscard]] int fd() const { return fd_.get(); }

private:
    SessionWriter(UniqueFd fd, std::uint64_t size, bool regular) : fd_(std::move(fd)), size_(size), regular_(regular) {}
    Result<std::size_t> write(std::string_view bytes);

    UniqueFd fd_;
    std::uint64_t size_ = 0;
    bool regular_ = false;  // ours to truncate and to sync
    bool broken_ = false;
};

struct SessionRecord {
    std::uint64_t offset = 0;
    std::int64_t arrival_ns = 0;
    Frame frame;
};

// Reads records of a file that is being written, one by one with bounded memory and unchecked. session_scan.h reads one
// that may be damaged.
class SessionReader {
public:
    // invalid when the magic or the version is not ours.
    static Result<SessionReader> open(const std::string& path);
    // Nothing at the end. A torn tail is the end (torn() tells); a record that announces too much is an error. After
    // the end it may be called again: a file that is being written has grown.
    Result<std::optional<SessionRecord>> next();
    [[nodiscard]] bool torn() const { return torn_; }
    // Where the next record starts: after the last whole one when next() gave nothing.
    [[nodiscard]] std::uint64_t offset() const { return offset_; }

private:
    explicit SessionReader(UniqueFd fd) : fd_(std::move(fd)) {}
    UniqueFd fd_;
    std::uint64_t offset_ = session_header_bytes;
    bool torn_ = false;
};

}  // namespace flamewire::wire
