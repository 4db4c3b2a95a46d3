#include "wire/session_scan.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/file.h"
#include "wire/control.h"

namespace flamewire::wire {
namespace {

constexpr std::string_view zstd_magic("\x28\xb5\x2f\xfd", 4);
constexpr std::string_view id_field("\x0a\x10", 2);  // the first field of a batch, as every agent writes it
// Damage is usually small, so the read window starts small and grows.
constexpr std::size_t first_window_bytes = std::size_t{4} << 10;
constexpr std::size_t last_window_bytes = std::size_t{1} << 20;
// Bytes of a candidate that are checked before reading its payload.
constexpr std::size_t head_bytes = record_header_bytes + zstd_magic.size();
// A crafted file can have a candidate at every byte. This bounds the work; real damage stays far below it.
constexpr std::uint64_t free_tries_bytes = std::uint64_t{64} << 20;
constexpr std::uint64_t tries_per_byte = 4;
// A greater version number is damage, not a later format.
constexpr std::uint64_t plausible_versions = 1000;

std::uint64_t little_endian(std::string_view bytes) {
    std::uint64_t value = 0;
    for (std::size_t i = bytes.size(); i-- > 0;) value = value << 8 | static_cast<unsigned char>(bytes[i]);
    return value;
}

FrameHeader frame_header(std::string_view record) {
    return decode_header(as_bytes_view(record).subspan<8, header_bytes>());
}

// The flags that session files contain.
bool is_stored(Flag flag) {
    return flag == Flag::reply || flag == Flag::metrics || flag == Flag::batch || flag == Flag::batch_zstd;
}

// Whether a payload of this flag can begin with these bytes.
bool begins_as(Flag flag, std::string_view payload) {
    switch (flag) {
        case Flag::batch: return payload.starts_with(id_field);
        case Flag::batch_zstd: return payload.starts_with(zstd_magic);
        case Flag::reply:
        case Flag::metrics: return payload.starts_with('{');
        default: return false;
    }
}

bool is_zero(std::string_view bytes) { return bytes.find_first_not_of('\0') == std::string_view::npos; }

}  // namespace

Result<SessionScanner> SessionScanner::open(const std::string& path) {
    UniqueFd fd = TRY(open_read(path));
    const std::string header = TRY(read_range(fd.get(), 0, session_header_bytes));
    if (header == session_header()) return of_descriptor(std::move(fd), session_header_bytes);
    if (header.size() == session_header_bytes && header.starts_with(session_magic)) {
        const std::uint64_t version = little_endian(std::string_view(header).substr(session_magic.size()));
        if (version != 0 && version <= plausible_versions)
            return fail(ErrorCode::unsupported, path + " is a session file of version " + std::to_string(version) +
                                                    "; this program reads version " + std::to_string(session_version));
    }
    SessionScanner scanner = TRY(of_descriptor(std::move(fd), 0));
    if (!TRY(scanner.find_record(0))) return fail(ErrorCode::invalid, unreadable_session(path, scanner.size_));
    scanner.tried_bytes_ = 0;
    return scanner;
}

Result<SessionScanner> SessionScanner::of_descriptor(UniqueFd fd, std::uint64_t offset) {
    struct stat status{};
    if (::fstat(fd.get(), &status) != 0) return fail_errno("fstat", errno);
    return SessionScanner(std::move(fd), static_cast<std::uint64_t>(status.st_size), offset);
}

Result<std::optional<SessionScanner::Header>> SessionScanner::header_at(std::uint64_t offset) {
    const std::string bytes = TRY(read_range(fd_.get(), offset, record_header_bytes));
    if (bytes.size() < record_header_bytes || is_zero(bytes)) return std::nullopt;
    Header header{static_cast<std::int64_t>(little_endian(std::string_view(bytes).substr(0, 8))), frame_header(bytes)};
    const std::uint64_t begin = offset + record_header_bytes;
    if (header.frame.payload_bytes > max_payload_from_agent || begin > size_ ||
        size_ - begin < header.frame.payload_bytes)
        return std::nullopt;
    return header;
}

std::optional<Frame> SessionScanner::sound_frame(Flag flag, std::string payload, Search search) const {
    if (search == Search::behind_damage && !begins_as(flag, payload)) return std::nullopt;
    if (flag == Flag::reply || flag == Flag::metrics) {
        if (!parse_object(payload)) return std::nullopt;
        return Frame{flag, std::move(payload)};
    }
    auto bytes = batch_bytes(flag, as_bytes_view(payload));
    if (!bytes) return std::nullopt;
    const auto header = peek_header(as_bytes_view(*bytes));
    if (!header || (recording_ && header->recording_id != *recording_)) return std::nullopt;
    return Frame{Flag::batch, std::move(*bytes)};
}

Result<std::optional<SoundRecord>> SessionScanner::record_at(std::uint64_t offset, Search search) {
    const auto header = TRY(header_at(offset));
    if (!header) return std::nullopt;
    const FrameHeader& frame = header->frame;
    if (search == Search::behind_damage && !is_stored(frame.flag)) return std::nullopt;
    std::string payload = TRY(read_range(fd_.get(), offset + record_header_bytes, frame.payload_bytes));
    if (payload.size() < frame.payload_bytes) return std::nullopt;  // the file was truncated in the meantime
    SoundRecord record{offset, record_header_bytes + frame.payload_bytes, 0, header->arrival_ns, {}};
    if (!is_stored(frame.flag)) {
        // The payload of an unknown flag cannot be checked, so a record must follow it. If it decodes as a batch, its
        // flag is damaged.
        const std::uint64_t end = offset + record.size_bytes;
        if (payload.starts_with(zstd_magic) && sound_frame(Flag::batch_zstd, payload, search)) return std::nullopt;
        if (end != size_ && !TRY(header_at(end))) return std::nullopt;
        record.frame = Frame{frame.flag, std::move(payload)};
        return record;
    }
    auto sound = sound_frame(frame.flag, std::move(payload), search);
    if (!sound) return std::nullopt;
    record.frame = std::move(*sound);
    return record;
}

Result<std::optional<SoundRecord>> SessionScanner::find_record(std::uint64_t from) {
    std::size_t window_bytes = first_window_bytes;
    for (std::uint64_t window_at = from; size_ > window_at && size_ - window_at >= record_header_bytes;) {
        const std::string window = TRY(read_range(fd_.get(), window_at, window_bytes + head_bytes));
        if (window.size() < record_header_bytes) break;
        const std::size_t positions = std::min(window_bytes, window.size() - record_header_bytes + 1);
        for (std::size_t i = 0; i < positions; ++i) {
            if (!is_stored(static_cast<Flag>(window[i + record_header_bytes - 1]))) continue;
            const std::string_view found = std::string_view(window).substr(i, head_bytes);
            const FrameHeader header = frame_header(found);
            const std::uint64_t begin = window_at + i + record_header_bytes;
            if (header.payload_bytes > max_payload_from_agent || size_ < begin ||
                size_ - begin < header.payload_bytes || !begins_as(header.flag, found.substr(record_header_bytes)))
                continue;
            tried_bytes_ += record_header_bytes + header.payload_bytes;
            if (tried_bytes_ / tries_per_byte > size_ + free_tries_bytes) return std::nullopt;
            if (auto record = TRY(record_at(window_at + i, Search::behind_damage))) return record;
        }
        window_at += positions;
        window_bytes = std::min(window_bytes * 2, last_window_bytes);
    }
    return std::nullopt;
}

Result<bool> SessionScanner::is_zero_from(std::uint64_t offset) {
    while (offset < size_) {
        const std::string window = TRY(read_range(fd_.get(), offset, last_window_bytes));
        if (window.empty() || !is_zero(window)) return window.empty();
        offset += window.size();
    }
    return true;
}

Result<SessionTail> SessionScanner::tail_at(std::uint64_t offset) {
    SessionTail tail{SessionTail::Kind::damaged, size_ - offset};
    const std::string bytes = TRY(read_range(fd_.get(), offset, record_header_bytes));
    const bool in_header = tail.bytes < record_header_bytes;
    const FrameHeader frame = in_header || bytes.size() < record_header_bytes ? FrameHeader{} : frame_header(bytes);
    const bool announced =
        frame.payload_bytes <= max_payload_from_agent && frame.payload_bytes > tail.bytes - record_header_bytes;
    const bool incomplete = in_header || (announced && !is_zero(bytes));
    if (incomplete || TRY(is_zero_from(offset))) tail.kind = SessionTail::Kind::cut;
    return tail;
}

Result<std::optional<SoundRecord>> SessionScanner::next() {
    tail_ = {};
    if (offset_ >= size_) return std::nullopt;
    // After a damaged file header, the first record can be anywhere.
    const bool in_order = offset_ != 0;
    auto record = in_order ? TRY(record_at(offset_, Search::in_order)) : std::optional<SoundRecord>{};
    if (!record) {
        record = TRY(find_record(offset_ + (in_order ? 1 : 0)));
        if (!record) {
            tail_ = TRY(tail_at(offset_));
            return std::nullopt;
        }
        record->unread_bytes = record->offset - offset_;
    }
    offset_ = record->offset + record->size_bytes;
    if (!recording_ && record->frame.flag == Flag::batch)
        if (const auto header = peek_header(as_bytes_view(record->frame.payload))) recording_ = header->recording_id;
    return record;
}

std::string unreadable_session(const std::string& path, std::uint64_t size_bytes) {
    const std::string remedy = ": delete it or replace it with a good copy of the session";
    if (size_bytes == 0) return path + " is empty" + remedy;
    return path + " is not a Flamewire session file, or none of its " + std::to_string(size_bytes) +
           " bytes are readable" + remedy;
}

bool is_being_written(const std::string& path) {
    const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    struct flock lock{};
    lock.l_type = F_RDLCK;
    lock.l_whence = SEEK_SET;
    return fd && ::fcntl(fd.get(), F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

}  // namespace flamewire::wire
