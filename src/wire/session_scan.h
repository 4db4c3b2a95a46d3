// Reads every sound record of a session file, whatever damage lies between them, and reports the bytes that it skips.
// A record is sound if its header fits the file and its payload passes a check: a batch decompresses (its zstd frame
// has a checksum) and has a header of this recording; JSON parses. See docs/wire/session-file.md.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/fd.h"
#include "base/result.h"
#include "wire/batch.h"
#include "wire/frame.h"
#include "wire/session_file.h"

namespace flamewire::wire {

struct SoundRecord {
    std::uint64_t offset = 0, size_bytes = 0;
    std::uint64_t unread_bytes = 0;  // damaged bytes directly before the record
    std::int64_t arrival_ns = 0;     // may be wrong in a record directly after damage
    Frame frame;                     // batches are decompressed, with Flag::batch
};

// The bytes after the last sound record.
struct SessionTail {
    enum class Kind : std::uint8_t {
        none,
        cut,      // an incomplete record, or space that was never written
        damaged,  // anything else
    };
    Kind kind = Kind::none;
    std::uint64_t bytes = 0;
};

// Memory: two frames. Searching for sound records reads at most 4 * (file size + 64 MiB).
class SessionScanner {
public:
    // Reads up to the current end of the file. invalid: it has no sound record (a damaged file header alone is not an
    // error). unsupported: a different session_version.
    static Result<SessionScanner> open(const std::string& path);
    static Result<SessionScanner> of_descriptor(UniqueFd fd, std::uint64_t offset);

    // Returns nothing at the end. tail() then describes what follows the last sound record.
    Result<std::optional<SoundRecord>> next();
    [[nodiscard]] const SessionTail& tail() const { return tail_; }
    [[nodiscard]] std::uint64_t size_bytes() const { return size_; }
    // Where the record after the last one begins.
    [[nodiscard]] std::uint64_t offset() const { return offset_; }

private:
    enum class Search : bool { in_order, behind_damage };
    struct Header {
        std::int64_t arrival_ns = 0;
        FrameHeader frame;
    };
    SessionScanner(UniqueFd fd, std::uint64_t size, std::uint64_t offset)
        : fd_(std::move(fd)), size_(size), offset_(offset) {}

    Result<std::optional<Header>> header_at(std::uint64_t offset);
    // Returns the record at `offset` if it is sound.
    Result<std::optional<SoundRecord>> record_at(std::uint64_t offset, Search search);
    std::optional<Frame> sound_frame(Flag flag, std::string payload, Search search) const;
    Result<std::optional<SoundRecord>> find_record(std::uint64_t from);
    Result<bool> is_zero_from(std::uint64_t offset);
    Result<SessionTail> tail_at(std::uint64_t offset);

    UniqueFd fd_;
    std::uint64_t size_ = 0, offset_ = 0;
    std::uint64_t tried_bytes_ = 0;  // payload bytes read while searching for a sound record
    std::optional<RecordingId> recording_;
    SessionTail tail_;
};

// The message for a file without a single sound record, with its remedy.
std::string unreadable_session(const std::string& path, std::uint64_t size_bytes);

// Whether a process, possibly this one, has the file open as a SessionWriter. False where the file system has no locks.
bool is_being_written(const std::string& path);

}  // namespace flamewire::wire
