// Damaged session files: records and skipped bytes account for every byte, and only recorded data is returned.
#include "wire/session_scan.h"

#include <catch2/catch.hpp>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/hex.h"
#include "wire/batch.h"

using namespace flamewire;
using namespace flamewire::wire;

namespace {

// An in-memory file with a path.
class MemoryFile {
public:
    explicit MemoryFile(std::string_view bytes) : fd_(::memfd_create("session", MFD_CLOEXEC)) {
        REQUIRE(write_all(fd_.get(), as_bytes_view(bytes)));
    }
    [[nodiscard]] std::string path() const { return "/proc/self/fd/" + std::to_string(fd_.get()); }

private:
    UniqueFd fd_;
};

struct Whole {
    std::string bytes = session_header();
    std::vector<std::size_t> ends{session_header_bytes};  // of the records, after that of the header
    std::vector<std::string> payloads;                    // as the scanner returns them
    std::vector<std::string> batches;                     // of these, only batches
};

// Batches of 20 to 3,000 bytes, with JSON between them.
Whole recording() {
    Whole whole;
    std::mt19937_64 random(7);
    EventPeriods periods;
    const auto add = [&](const Frame& frame, std::string payload) {
        whole.bytes += encode_record(1'700'000'000'000'000'000 + static_cast<std::int64_t>(whole.ends.size()),
                                     frame.flag, frame.payload);
        whole.ends.push_back(whole.bytes.size());
        whole.payloads.push_back(std::move(payload));
    };
    const std::string hello = R"({"type":"hello","version":1})";
    add({Flag::reply, hello}, hello);
    for (std::uint64_t seq = 1; seq <= 60; ++seq) {
        Batch batch;
        batch.recording_id[3] = 9;
        batch.seq = seq;
        batch.monotonic_ns = seq * 250'000'000;
        for (std::uint64_t i = 0; i < random() % 150; ++i) batch.strings.push_back(std::to_string(random()));
        const std::string bytes = encode(batch, periods);
        add(batch_frame(bytes), bytes);
        whole.batches.push_back(bytes);
        if (seq % 7 == 0) {
            const std::string health = R"({"type":"system","mono_ns":)" + std::to_string(seq) + "}";
            add({Flag::metrics, health}, health);
        }
    }
    return whole;
}

struct Scanned {
    std::vector<std::string> payloads, batches;
    std::uint64_t read = 0, unread = 0;
    SessionTail tail;
};

Scanned scan(std::string_view bytes) {
    const MemoryFile file(bytes);
    Scanned scanned;
    auto scanner = SessionScanner::open(file.path());
    if (!scanner) {
        scanned.unread = bytes.size();
        return scanned;
    }
    std::uint64_t at = 0;
    for (;;) {
        auto record = scanner->next();
        REQUIRE(record);
        if (!*record) break;
        // The header counts as read, or as part of the bytes that are skipped before the first record.
        if (at == 0) scanned.read = at = (*record)->offset - (*record)->unread_bytes;
        CHECK((*record)->offset == at + (*record)->unread_bytes);
        at = (*record)->offset + (*record)->size_bytes;
        scanned.unread += (*record)->unread_bytes;
        scanned.read += (*record)->size_bytes;
        scanned.payloads.push_back((*record)->frame.payload);
        if ((*record)->frame.flag == Flag::batch) scanned.batches.push_back((*record)->frame.payload);
    }
    scanned.tail = scanner->tail();
    if (at == 0) scanned.read = session_header_bytes;
    return scanned;
}

// Whether `part` is what remains of `whole`, in the same order.
bool is_subsequence(const std::vector<std::string>& part, const std::vector<std::string>& whole) {
    std::size_t at = 0;
    for (const std::string& one : whole)
        if (at < part.size() && part[at] == one) ++at;
    return at == part.size();
}

}  // namespace

TEST_CASE("an intact file is read without a gap, including unknown frames") {
    Whole whole = recording();
    const std::string later = encode_record(5, static_cast<Flag>(200), "of a later version");
    const Scanned scanned = scan(whole.bytes + later);
    whole.payloads.emplace_back("of a later version");
    CHECK(scanned.payloads == whole.payloads);
    CHECK(scanned.read == whole.bytes.size() + later.size());
    CHECK(scanned.unread == 0);
    CHECK(scanned.tail.kind == SessionTail::Kind::none);
}

TEST_CASE("a truncated file reports the number of remaining bytes") {
    const Whole whole = recording();
    for (std::size_t size = session_header_bytes; size < whole.bytes.size(); size += size % 5 + 1) {
        CAPTURE(size);
        const Scanned scanned = scan(std::string_view(whole.bytes).substr(0, size));
        const auto records = static_cast<std::size_t>(std::ranges::upper_bound(whole.ends, size) - whole.ends.begin());
        CHECK(scanned.payloads.size() == records - 1);
        CHECK(scanned.unread == 0);
        CHECK(scanned.tail.bytes == size - whole.ends[records - 1]);
        CHECK((scanned.tail.kind == SessionTail::Kind::cut) == (scanned.tail.bytes != 0));
        CHECK(scanned.read + scanned.tail.bytes == size);
    }
    const Scanned reserved = scan(whole.bytes + std::string(5000, '\0'));
    CHECK(reserved.payloads == whole.payloads);
    CHECK(reserved.tail.kind == SessionTail::Kind::cut);
    CHECK(reserved.tail.bytes == 5000);
}

TEST_CASE("overwritten bytes cost only the records that contain them") {
    const Whole whole = recording();
    std::mt19937_64 random(11);
    for (int round = 0; round < 500; ++round) {
        CAPTURE(round);
        std::string bytes = whole.bytes;
        std::size_t hit = 0;
        for (std::uint64_t place = 0; place <= random() % 3; ++place) {
            const std::size_t length = random() % 4 == 0 ? 1 : 1 + random() % 500;
            const std::size_t at = random() % (bytes.size() - length);
            // A disk that returns zeros or random bytes.
            const bool zeros = random() % 4 == 0;
            for (std::size_t i = 0; i < length; ++i) bytes[at + i] = zeros ? '\0' : static_cast<char>(random());
            for (std::size_t i = 0; i + 1 < whole.ends.size(); ++i)
                if (whole.ends[i] < at + length && at < whole.ends[i + 1]) ++hit;
        }
        const Scanned scanned = scan(bytes);
        CHECK(scanned.read + scanned.unread + scanned.tail.bytes == bytes.size());
        // For JSON, only its syntax can be checked. For a frame with an unknown flag, nothing can.
        CHECK(is_subsequence(scanned.batches, whole.batches));
        CHECK(scanned.payloads.size() + hit >= whole.payloads.size());
        if (scanned.payloads.size() < whole.payloads.size()) CHECK(scanned.unread + scanned.tail.bytes > 0);
    }
}

TEST_CASE("a wrong length hides no records after it") {
    const Whole whole = recording();
    for (const char* length : {"00010000", "00000001", "03ffffff", "ffffffff"}) {
        std::string bytes = whole.bytes;
        bytes.replace(whole.ends[4] + 8, 4, *from_hex(length));
        const Scanned scanned = scan(bytes);
        CHECK(scanned.payloads.size() == whole.payloads.size() - 1);
        CHECK(scanned.unread == whole.ends[5] - whole.ends[4]);
        // It must not be removed as a torn tail either.
        const MemoryFile file(bytes);
        CHECK(SessionWriter::append_to(file.path()).error().code == ErrorCode::invalid);
        CHECK(*read_file(file.path()) == bytes);
    }
}

TEST_CASE("a file without a record is not a session; one without its header is") {
    const Whole whole = recording();
    std::mt19937_64 random(3);
    std::string noise(100'000, '\0');
    for (char& byte : noise) byte = static_cast<char>(random());
    for (const std::string& bytes : {std::string(), noise, std::string(5000, '\0'), session_header().substr(0, 8)}) {
        const MemoryFile file(bytes);
        const auto scanner = SessionScanner::open(file.path());
        REQUIRE_FALSE(scanner);
        CHECK(scanner.error().code == ErrorCode::invalid);
        CHECK_THAT(scanner.error().message,
                   Catch::Contains(bytes.empty() ? "is empty" : "is not a Flamewire session") &&
                       Catch::Contains("replace it with a good copy"));
    }
    const MemoryFile later("FLMWIRE\n" + std::string("\x02\0\0\0", 4));
    CHECK(SessionScanner::open(later.path()).error().code == ErrorCode::unsupported);
    const Scanned headless = scan("!!!" + whole.bytes.substr(3));
    CHECK(headless.payloads == whole.payloads);
    CHECK(headless.unread == session_header_bytes);
    // Bytes in place of the header do not count as a record of a later version.
    const std::string other = std::string(8, '!') + *from_hex("00000002ff") + "ab";
    const Scanned behind = scan(other + encode_record(7, Flag::reply, "{}"));
    CHECK(behind.payloads == std::vector<std::string>{"{}"});
    CHECK(behind.unread == other.size());
}

TEST_CASE("zeros after the last record are a truncated tail only up to the end of the file") {
    const Whole whole = recording();
    const std::string zeros(20, '\0');
    CHECK(scan(whole.bytes + zeros).tail.kind == SessionTail::Kind::cut);
    const Scanned more = scan(whole.bytes + zeros + std::string(500, 'x'));
    CHECK(more.tail.kind == SessionTail::Kind::damaged);
    CHECK(more.tail.bytes == 520);
    const MemoryFile file(whole.bytes + zeros + std::string(500, 'x'));
    CHECK_FALSE(SessionWriter::append_to(file.path()));
}

TEST_CASE("the search through damage takes bounded time") {
    // A candidate every 14 bytes, each with a payload of 960 KiB.
    std::string bytes = session_header();
    const std::string candidate = std::string(8, '\0') + *from_hex("000f000004") + "{";
    while (bytes.size() < std::size_t{2} << 20) bytes += candidate;
    const Scanned scanned = scan(bytes);
    CHECK(scanned.payloads.empty());
    CHECK(scanned.tail.bytes == bytes.size() - session_header_bytes);
}

TEST_CASE("a file that is being written is detected by its lock") {
    std::string directory = "/tmp/flamewire-scan-XXXXXX";
    REQUIRE(::mkdtemp(directory.data()) != nullptr);
    const std::string path = directory + "/session.flw";
    {
        const auto writer = SessionWriter::create(path);
        REQUIRE(writer);
        CHECK(is_being_written(path));
    }
    CHECK_FALSE(is_being_written(path));
    {
        const auto writer = SessionWriter::append_to(path);
        CHECK(is_being_written(path));
    }
    CHECK_FALSE(is_being_written(path));
    CHECK_FALSE(is_being_written("/nonexistent/file"));
    ::unlink(path.c_str());
    ::rmdir(directory.c_str());
}
