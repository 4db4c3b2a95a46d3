// A session on disk: 8 bytes of magic, u32 little-endian version, then records. A record is an i64 little-endian
// arrival time (CLOCK_REALTIME, ns) and one wire frame as received (frame.h). A truncated file is valid up to its last
// complete record. A record header of only zeros is a tail that was never written. The agent's --output writes the same
// format.
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

// Appends records to a file or a pipe. A failed append (disk full) truncates the file to its previous size. If that is
// impossible (a pipe), every later append fails too. A pipe without a reader raises SIGPIPE unless the program ignores
// it.
class SessionWriter {
public:
    // Creates a file at `path`. Fails if it exists.
    static Result<SessionWriter> create(const std::string& path);
    // Opens an existing file and cuts off its torn tail, if any. invalid: it is not a session file, or the tail is more
    // than the beginning of one record.
    static Result<SessionWriter> append_to(const std::string& path);
    // Writes the header to any writable descriptor (a pipe, stdout). Never truncates existing content.
    static Result<SessionWriter> to_descriptor(UniqueFd fd);

    Result<std::size_t> append(std::int64_t arrival_ns, Flag flag, std::string_view payload);
    // Calls fdatasync. Does nothing for a pipe.
    Result<bool> sync();
    [[nodiscard]] std::uint64_t size_bytes() const { return size_; }
    [[nodiscard]] int fd() const { return fd_.get(); }

private:
    SessionWriter(UniqueFd fd, std::uint64_t size, bool regular) : fd_(std::move(fd)), size_(size), regular_(regular) {}
    Result<std::size_t> write(std::string_view bytes);

    UniqueFd fd_;
    std::uint64_t size_ = 0;
    bool regular_ = false;  // a file that this class may truncate and sync
    bool broken_ = false;
};

struct SessionRecord {
    std::uint64_t offset = 0;
    std::int64_t arrival_ns = 0;
    Frame frame;
};

// Reads the records of a file that is being written, one at a time, with bounded memory and without checking payloads.
// session_scan.h reads files that may be damaged.
class SessionReader {
public:
    // invalid: wrong magic or version.
    static Result<SessionReader> open(const std::string& path);
    // Returns nothing at the end. A torn tail counts as the end and sets torn(). A record that announces more than
    // max_payload_from_agent is an error. Call it again after the end to read what was appended since.
    Result<std::optional<SessionRecord>> next();
    [[nodiscard]] bool torn() const { return torn_; }
    // Where the next record starts. After next() returned nothing, that is the end of the last complete record.
    [[nodiscard]] std::uint64_t offset() const { return offset_; }

private:
    explicit SessionReader(UniqueFd fd) : fd_(std::move(fd)) {}
    UniqueFd fd_;
    std::uint64_t offset_ = session_header_bytes;
    bool torn_ = false;
};

}  // namespace flamewire::wire
