// Arbitrary bytes as a session file: read like a live file, scanned for intact records, opened for appending (which
// only removes an incomplete tail), and scanned again.
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>

#include "base/file.h"
#include "wire/session_file.h"
#include "wire/session_scan.h"

using namespace flamewire;
using namespace flamewire::wire;

namespace {

void read_all(const std::string& path) {
    auto reader = SessionReader::open(path);
    if (!reader) return;
    for (auto record = reader->next(); record && *record;) record = reader->next();
}

struct Scan {
    std::size_t records = 0;
    std::uint64_t unread = 0;  // between the records
    std::uint64_t end = 0;     // of the last record
    SessionTail tail;
};

// Nothing if it is not a session. Each byte must be in a record, between two, or after the last one.
std::optional<Scan> scan(const std::string& path) {
    auto scanner = SessionScanner::open(path);
    if (!scanner) return std::nullopt;
    Scan found;
    found.end = scanner->offset();
    for (;; ++found.records) {
        const auto record = scanner->next();
        if (!record) std::abort();
        if (!*record) break;
        if ((*record)->offset != found.end + (*record)->unread_bytes) std::abort();
        found.unread += (*record)->unread_bytes;
        found.end = (*record)->offset + (*record)->size_bytes;
    }
    found.tail = scanner->tail();
    if (found.end + found.tail.bytes != scanner->size_bytes()) std::abort();
    if ((found.tail.kind == SessionTail::Kind::none) != (found.tail.bytes == 0)) std::abort();
    return found;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const UniqueFd file(::memfd_create("session", MFD_CLOEXEC));
    if (!write_all(file.get(), std::as_bytes(std::span(data, size)))) return 0;
    const std::string path = "/proc/self/fd/" + std::to_string(file.get());
    read_all(path);
    const auto before = scan(path);
    auto writer = SessionWriter::append_to(path);
    // A session without its header can be read, but not continued.
    const bool sound =
        before && SessionReader::open(path) && before->unread == 0 && before->tail.kind != SessionTail::Kind::damaged;
    // A truncated tail stays if it may contain a record, even one of another recording.
    if (sound && before->tail.kind == SessionTail::Kind::none && !writer) std::abort();
    if (!writer || !writer->append(1, Flag::reply, "{}")) return 0;
    const auto after = scan(path);
    if (!after) std::abort();
    if (sound && (after->records != before->records + 1 || after->tail.kind != SessionTail::Kind::none)) std::abort();
    return 0;
}
