// Session files: bytes written by hand, truncated at every byte, on a full disk, into a pipe.
#include "wire/session_file.h"

#include <catch2/catch.hpp>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <vector>

#include "base/file.h"
#include "base/hex.h"

using namespace flamewire;
using namespace flamewire::wire;

namespace {

class TemporaryFile {
public:
    TemporaryFile() {
        std::string name = "/tmp/flamewire-session-XXXXXX";
        directory_ = ::mkdtemp(name.data());
        path = directory_ + "/session.flw";
    }
    ~TemporaryFile() {
        ::unlink(path.c_str());
        ::rmdir(directory_.c_str());
    }
    void write(std::string_view bytes) const {
        const UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
        REQUIRE(write_all(fd.get(), as_bytes_view(bytes)));
    }
    [[nodiscard]] std::string content() const { return *read_file(path); }
    std::string path;

private:
    std::string directory_;
};

const std::string header_hex =
    "464c4d574952450a"
    "01000000";
// Arrival 0x0102030405060708, flag 5, payload "ab"; arrival 1, flag 3, no payload; arrival 2, flag 200, payload "c".
const std::string first_hex =
    "0807060504030201"
    "0000000205"
    "6162";
const std::string second_hex =
    "0100000000000000"
    "0000000003";
const std::string third_hex =
    "0200000000000000"
    "00000001c8"
    "63";

std::string whole() { return *from_hex(header_hex + first_hex + second_hex + third_hex); }

std::vector<std::string> payloads(const std::string& path, bool* torn = nullptr) {
    auto reader = SessionReader::open(path);
    REQUIRE(reader);
    std::vector<std::string> found;
    for (;;) {
        auto record = reader->next();
        REQUIRE(record);
        if (!*record) break;
        found.push_back((*record)->frame.payload);
    }
    if (torn != nullptr) *torn = reader->torn();
    return found;
}

}  // namespace

TEST_CASE("a session is written byte for byte as documented") {
    const TemporaryFile file;
    auto writer = SessionWriter::create(file.path);
    REQUIRE(writer);
    CHECK(*writer->append(0x0102030405060708, Flag::batch, "ab") == 15);
    REQUIRE(writer->append(1, Flag::reply, ""));
    REQUIRE(writer->append(2, static_cast<Flag>(200), "c"));
    REQUIRE(writer->sync());
    CHECK(to_hex(file.content()) == to_hex(whole()));
    CHECK(writer->size_bytes() == whole().size());
    CHECK_FALSE(SessionWriter::create(file.path));

    auto reader = SessionReader::open(file.path);
    REQUIRE(reader);
    const auto first = reader->next();
    REQUIRE(*first);
    CHECK((*first)->offset == 12);
    CHECK((*first)->arrival_ns == 0x0102030405060708);
    CHECK((*first)->frame.flag == Flag::batch);
    CHECK(reader->offset() == 27);
    // The reader returns records that are appended after it reached the end.
    while (*reader->next()) {
    }
    CHECK_FALSE(reader->torn());
    REQUIRE(writer->append(3, Flag::reply, "later"));
    const auto later = reader->next();
    REQUIRE(*later);
    CHECK((*later)->frame.payload == "later");
}

TEST_CASE("truncated at every byte: complete records stay, and writing continues after them") {
    const std::string bytes = whole();
    const std::size_t ends[] = {12, 27, 40, 54};
    REQUIRE(bytes.size() == 54);
    for (std::size_t size = 0; size <= bytes.size(); ++size) {
        CAPTURE(size);
        const TemporaryFile file;
        file.write(bytes.substr(0, size));
        std::size_t kept = 0, records = 0;
        for (std::size_t i = 0; i < 4; ++i)
            if (ends[i] <= size) {
                kept = ends[i];
                records = i;
            }
        if (size >= 12) {
            bool torn = false;
            CHECK(payloads(file.path, &torn).size() == records);
            CHECK(torn == (kept != size));
        } else {
            CHECK_FALSE(SessionReader::open(file.path));
        }
        auto writer = SessionWriter::append_to(file.path);
        REQUIRE(writer);
        CHECK(writer->size_bytes() == std::max<std::size_t>(kept, 12));
        REQUIRE(writer->append(7, Flag::reply, "new"));
        const auto after = payloads(file.path);
        REQUIRE(after.size() == records + 1);
        CHECK(after.back() == "new");
        CHECK(file.content().substr(0, kept) == bytes.substr(0, kept));
    }
}

TEST_CASE("a tail of zeros counts as never written") {
    const TemporaryFile file;
    file.write(whole() + std::string(5000, '\0'));
    bool torn = false;
    CHECK(payloads(file.path, &torn).size() == 3);
    CHECK(torn);
    REQUIRE(SessionWriter::append_to(file.path));
    CHECK(file.content() == whole());
}

TEST_CASE("files that are not sessions, or damaged in the middle, are refused and not changed") {
    const TemporaryFile file;
    for (const std::string& bytes :
         {std::string("FLMWIRE\n\x02\0\0\0", 12), std::string("#!/bin/sh\nrm -rf"), std::string("FLMWIRF\n"),
          *from_hex(header_hex + first_hex +
                    "0100000000000000"
                    "ffffffff03"
                    "00")}) {
        file.write(bytes);
        CHECK(SessionWriter::append_to(file.path).error().code == ErrorCode::invalid);
        CHECK(file.content() == bytes);
    }
    auto reader = SessionReader::open(file.path);  // the last one: one valid record, then nonsense
    REQUIRE(reader);
    REQUIRE(*reader->next());
    const auto nonsense = reader->next();
    REQUIRE_FALSE(nonsense);
    CHECK(nonsense.error().message.find("byte 27") != std::string::npos);
    CHECK(SessionReader::open("/nonexistent/file").error().code == ErrorCode::not_found);
}

TEST_CASE("after a failed write on a full disk, the file is still valid") {
    const TemporaryFile file;
    auto writer = SessionWriter::create(file.path);
    REQUIRE(writer);
    REQUIRE(writer->append(1, Flag::batch, "good"));
    const std::string before = file.content();
    rlimit limit{};
    ::getrlimit(RLIMIT_FSIZE, &limit);
    const rlimit small{before.size() + 20, limit.rlim_max};
    const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
    ::setrlimit(RLIMIT_FSIZE, &small);
    const auto failed = writer->append(2, Flag::batch, std::string(1000, 'x'));
    const auto fits = writer->append(3, Flag::batch, "ok");
    ::setrlimit(RLIMIT_FSIZE, &limit);
    std::signal(SIGXFSZ, old_handler);
    REQUIRE_FALSE(failed);
    REQUIRE(fits);
    CHECK(file.content().substr(0, before.size()) == before);
    CHECK(payloads(file.path) == std::vector<std::string>{"good", "ok"});
    CHECK(writer->append(4, Flag::batch, std::string(max_payload_from_agent + 1, 'x')).error().code ==
          ErrorCode::too_large);
}

TEST_CASE("a session can be written to a pipe, and a broken pipe is a permanent error") {
    int ends[2];
    REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
    UniqueFd read_end(ends[0]);
    auto writer = SessionWriter::to_descriptor(UniqueFd(ends[1]));
    REQUIRE(writer);
    REQUIRE(writer->append(2, static_cast<Flag>(200), "c"));
    REQUIRE(writer->sync());
    std::string got(100, '\0');
    got.resize(static_cast<std::size_t>(::read(read_end.get(), got.data(), got.size())));
    CHECK(to_hex(got) == header_hex + third_hex);
    const auto old_handler = std::signal(SIGPIPE, SIG_IGN);
    read_end.reset();
    CHECK_FALSE(writer->append(1, Flag::reply, "x"));
    CHECK_FALSE(writer->append(1, Flag::reply, "x"));
    std::signal(SIGPIPE, old_handler);
}
