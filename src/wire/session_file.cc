#include "wire/session_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "base/file.h"
#include "wire/session_scan.h"

namespace flamewire::wire {
namespace {

void put_little_endian(std::string& out, std::uint64_t value, int bytes) {
    for (int i = 0; i < bytes; ++i) out.push_back(static_cast<char>(value >> (8 * i) & 0xFFU));
}

std::uint64_t read_little_endian(Bytes bytes) {
    std::uint64_t value = 0;
    for (std::size_t i = bytes.size(); i-- > 0;) value = value << 8 | std::to_integer<std::uint64_t>(bytes[i]);
    return value;
}

struct RecordHeader {
    std::int64_t arrival_ns = 0;
    FrameHeader frame;
};

enum class Tail { none, torn };

Result<std::uint64_t> file_size(int fd) {
    struct stat status{};
    if (::fstat(fd, &status) != 0) return fail_errno("fstat", errno);
    return static_cast<std::uint64_t>(status.st_size);
}

// The header of the record at `offset`, or why there is none: the end of the file, or a tail left by a crash. A header
// of only zeros is such a tail, because a file system can extend a file before it writes the bytes.
struct RecordHead {
    std::optional<RecordHeader> header;
    Tail tail = Tail::none;
};

Result<RecordHead> read_record_head(int fd, std::uint64_t offset) {
    const std::string bytes = TRY(read_range(fd, offset, record_header_bytes));
    if (bytes.empty()) return RecordHead{};
    if (bytes.size() < record_header_bytes || bytes.find_first_not_of('\0') == std::string::npos)
        return RecordHead{{}, Tail::torn};
    const Bytes view = as_bytes_view(bytes);
    RecordHeader header;
    header.arrival_ns = static_cast<std::int64_t>(read_little_endian(view.first(8)));
    header.frame = decode_header(view.subspan<8, header_bytes>());
    if (header.frame.payload_bytes > max_payload_from_agent)
        return fail(ErrorCode::invalid, "the record at byte " + std::to_string(offset) + " announces " +
                                            std::to_string(header.frame.payload_bytes) +
                                            " bytes: the session file is damaged there");
    const std::uint64_t size = TRY(file_size(fd));
    const std::uint64_t payload_begin = offset + record_header_bytes;
    if (size < payload_begin || size - payload_begin < header.frame.payload_bytes) return RecordHead{{}, Tail::torn};
    return RecordHead{header, Tail::none};
}

Result<bool> check_session_header(const std::string& found, const std::string& path) {
    if (found.size() < session_header_bytes || !found.starts_with(session_magic))
        return fail(ErrorCode::invalid, path + " is not a Flamewire session file");
    const std::uint64_t version = read_little_endian(as_bytes_view(found).subspan(session_magic.size(), 4));
    if (version != session_version)
        return fail(ErrorCode::invalid, path + " is a session file of version " + std::to_string(version) +
                                            "; this program reads version " + std::to_string(session_version));
    return true;
}

// The lock makes readers treat an incomplete last record as still being written. Fails silently without lock support.
void lock_for_writing(int fd) {
    struct flock lock{};
    lock.l_type = F_WRLCK;
    lock.l_whence = SEEK_SET;
    (void)::fcntl(fd, F_OFD_SETLK, &lock);
}

// Checks that the bytes from `offset` on are only the beginning of one record, so that they may be cut off.
Result<bool> check_tail(int fd, std::uint64_t offset, const std::string& path) {
    UniqueFd own(::fcntl(fd, F_DUPFD_CLOEXEC, 0));
    if (!own) return fail_errno("dup", errno);
    SessionScanner scanner = TRY(SessionScanner::of_descriptor(std::move(own), offset));
    if (TRY(scanner.next()) || scanner.tail().kind == SessionTail::Kind::damaged)
        return fail(ErrorCode::invalid, path + " is damaged at byte " + std::to_string(offset));
    return true;
}

}  // namespace

std::string session_header() {
    std::string bytes(session_magic);
    put_little_endian(bytes, session_version, 4);
    return bytes;
}

std::string encode_record(std::int64_t arrival_ns, Flag flag, std::string_view payload) {
    std::string bytes;
    bytes.reserve(record_header_bytes + payload.size());
    put_little_endian(bytes, static_cast<std::uint64_t>(arrival_ns), 8);
    bytes += encode_frame(flag, payload);
    return bytes;
}

Result<SessionWriter> SessionWriter::create(const std::string& path) {
    UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0600));
    if (!fd) return fail_errno("create " + path, errno);
    lock_for_writing(fd.get());
    SessionWriter writer(std::move(fd), 0, true);
    (void)TRY(writer.write(session_header()));
    return writer;
}

Result<SessionWriter> SessionWriter::append_to(const std::string& path) {
    UniqueFd fd(::open(path.c_str(), O_RDWR | O_APPEND | O_CLOEXEC));
    if (!fd) return fail_errno("open " + path, errno);
    const std::string header = TRY(read_range(fd.get(), 0, session_header_bytes));
    std::uint64_t end = 0;
    // A file that ends within its header has no records, so write it from the start.
    const bool cut_in_header = header.size() < session_header_bytes && session_header().starts_with(header);
    if (!cut_in_header) {
        (void)TRY(check_session_header(header, path));
        end = session_header_bytes;
        for (;;) {
            const RecordHead head = TRY(read_record_head(fd.get(), end));
            if (!head.header) break;
            end += record_header_bytes + head.header->frame.payload_bytes;
        }
        (void)TRY(check_tail(fd.get(), end, path));
    }
    if (::ftruncate(fd.get(), static_cast<off_t>(end)) != 0) return fail_errno("cut the torn tail of " + path, errno);
    lock_for_writing(fd.get());
    SessionWriter writer(std::move(fd), end, true);
    if (cut_in_header) (void)TRY(writer.write(session_header()));
    return writer;
}

Result<SessionWriter> SessionWriter::to_descriptor(UniqueFd fd) {
    struct stat status{};
    if (::fstat(fd.get(), &status) != 0) return fail_errno("fstat", errno);
    lock_for_writing(fd.get());
    SessionWriter writer(std::move(fd), 0, false);
    (void)TRY(writer.write(session_header()));
    return writer;
}

Result<std::size_t> SessionWriter::append(std::int64_t arrival_ns, Flag flag, std::string_view payload) {
    if (payload.size() > max_payload_from_agent)
        return fail(ErrorCode::too_large, "a frame of " + std::to_string(payload.size()) + " bytes is over the limit");
    return write(encode_record(arrival_ns, flag, payload));
}

Result<std::size_t> SessionWriter::write(std::string_view bytes) {
    if (broken_) return fail(ErrorCode::io, "the session file ends in half a record and could not be cut");
    Result<std::size_t> written = write_all(fd_.get(), as_bytes_view(bytes));
    if (written) {
        size_ += bytes.size();
    } else {
        // A partial record would make everything after it unreadable: cut it off, or refuse all later writes.
        broken_ = !regular_ || ::ftruncate(fd_.get(), static_cast<off_t>(size_)) != 0;
    }
    return written;
}

Result<bool> SessionWriter::sync() {
    if (regular_ && ::fdatasync(fd_.get()) != 0) return fail_errno("fdatasync", errno);
    return true;
}

Result<SessionReader> SessionReader::open(const std::string& path) {
    UniqueFd fd = TRY(open_read(path));
    const std::string header = TRY(read_range(fd.get(), 0, session_header_bytes));
    (void)TRY(check_session_header(header, path));
    return SessionReader(std::move(fd));
}

Result<std::optional<SessionRecord>> SessionReader::next() {
    const RecordHead head = TRY(read_record_head(fd_.get(), offset_));
    torn_ = head.tail == Tail::torn;
    if (!head.header) return std::nullopt;
    const FrameHeader& frame = head.header->frame;
    std::string payload = TRY(read_range(fd_.get(), offset_ + record_header_bytes, frame.payload_bytes));
    if (payload.size() < frame.payload_bytes) {  // the file was truncated in the meantime
        torn_ = true;
        return std::nullopt;
    }
    SessionRecord record{offset_, head.header->arrival_ns, Frame{frame.flag, std::move(payload)}};
    offset_ += record_header_bytes + frame.payload_bytes;
    return record;
}

}  // namespace flamewire::wire
