// A damaged session file: the first notice reports what is missing, in bytes and times, and the rest is shown.
#include <catch2/catch.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <random>

#include "base/decimal.h"
#include "recording.h"
#include "server/session/catalog.h"

using namespace flamewire;
using namespace flamewire::server;
using flamewire::test::arrival;
using flamewire::test::content;
using flamewire::test::RecordingScene;
using flamewire::test::ScratchDirectory;
namespace fs = std::filesystem;

namespace {

constexpr std::uint64_t header_bytes = 12;

void put(const std::string& path, const std::string& bytes) {
    std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

struct Whole {
    std::string bytes;
    std::vector<std::size_t> ends;  // of each batch
};

// `batches` of 5 samples each, 250 ms apart. The batch `new_at` has the tables of a new epoch.
Whole recorded(const std::string& path, std::size_t batches, bool ended, std::size_t new_at = 0) {
    RecordingScene scene;
    auto session = Session::create("x", path, scene.id(), {}).value();
    Whole whole;
    for (std::size_t n = 1; n <= batches; ++n) {
        if (n == new_at) scene.new_epoch();
        const wire::Frame frame = ended && n == batches ? scene.last() : scene.next();
        session->ingest(frame.flag, frame.payload, arrival).value();
        whole.ends.push_back(fs::file_size(path));
    }
    session.reset();
    whole.bytes = content(path);
    return whole;
}

SessionInfo opened(const std::string& path) { return Session::load("s", path, {}).value()->info(); }

std::uint64_t lost_behind(const SessionInfo& info) {
    std::uint64_t count = 0;
    for (const LossInfo& loss : info.losses)
        if (loss.reason == "batches_missing") count += loss.count;
    return count;
}

}  // namespace

TEST_CASE("the notice of a truncated file has its size and time") {
    const ScratchDirectory folder;
    const std::string path = folder / "s.flw";
    const Whole whole = recorded(path, 12, true);
    for (std::size_t size = whole.ends[0]; size < whole.bytes.size(); ++size) {
        CAPTURE(size);
        put(path, whole.bytes.substr(0, size));
        const auto records = static_cast<std::size_t>(std::ranges::upper_bound(whole.ends, size) - whole.ends.begin());
        const std::size_t left_over = size - whole.ends[records - 1];
        const SessionInfo info = opened(path);
        CHECK(info.samples == 5 * records);
        CHECK(info.lost_at_least == (left_over != 0));
        if (left_over == 0) {
            CHECK(info.notices.empty());
            continue;
        }
        REQUIRE(info.notices.size() == 1);
        CHECK(info.notices[0].code == "file-cut");
        CHECK_FALSE(info.notices[0].remedy.empty());
        // Only the time of the last whole batch is known.
        CHECK(info.notices[0].text ==
              fmt::format("The session file ends in the middle of a frame: its last {} unreadable. "
                          "Samples are missing after {:.2f} s.",
                          left_over == 1 ? "1 byte is" : fmt::format("{} bytes are", left_over),
                          0.25 * static_cast<double>(records)));
    }
}

TEST_CASE("the notice of overwritten bytes has the missing time, and the rest is shown") {
    const ScratchDirectory folder;
    const std::string path = folder / "s.flw";
    const Whole whole = recorded(path, 40, true, 21);
    std::mt19937_64 random(5);
    for (int round = 0; round < 400; ++round) {
        CAPTURE(round);
        std::string bytes = whole.bytes;
        const std::size_t length = 1 + random() % 300;
        const std::size_t at = header_bytes + random() % (bytes.size() - length - header_bytes);
        for (std::size_t i = 0; i < length; ++i) bytes[at + i] = static_cast<char>(random());
        put(path, bytes);
        std::size_t hit = 0, first_hit = whole.ends.size();
        for (std::size_t n = 0; n < whole.ends.size(); ++n) {
            const std::size_t begin = n == 0 ? header_bytes : whole.ends[n - 1];
            // The arrival time has no checksum.
            if (begin + 8 < at + length && at < whole.ends[n]) ++hit, first_hit = std::min(first_hit, n);
        }
        const SessionInfo info = opened(path);
        const bool tables_hit = first_hit == 0 || (first_hit <= 20 && first_hit + hit > 20);
        CHECK(info.samples + lost_behind(info) == 5 * (40 - hit));
        if (!tables_hit) CHECK(lost_behind(info) == 0);
        CHECK(info.lost == lost_behind(info));
        if (hit == 0) continue;
        REQUIRE_FALSE(info.notices.empty());
        CHECK((info.notices[0].code == "file-damaged" || info.notices[0].code == "file-cut"));
        CHECK(info.lost_at_least);
        // The damaged batches were in the file.
        for (const wire::Notice& notice : info.notices) CHECK(notice.code != "batches-missing");
    }
}

TEST_CASE("missing data is in the first notice, on the time axis, and in the sidecar") {
    const ScratchDirectory data;
    auto catalog = Catalog::open(data.path(), {}).value();
    const std::string path = data / "sessions/s.flw";
    const Whole whole = recorded(path, 8, true);
    std::string bytes = whole.bytes;
    bytes[whole.ends[4] - 3] = static_cast<char>(bytes[whole.ends[4] - 3] ^ 1);  // in batch 5, from 1.00 s to 1.25 s
    put(path, bytes);
    const auto session = catalog->get("s").value();
    session->status().set_notice("other", "Another thing.", "");
    const auto notices = session->info().notices;
    REQUIRE(notices.size() == 2);
    CHECK(notices[0].text == fmt::format("The session file is damaged: {} of {} bytes are unreadable. "
                                         "Samples are missing from 1.00 s to 1.25 s.",
                                         whole.ends[4] - whole.ends[3], with_commas(bytes.size())));
    CHECK(session->info().samples == 35);
    const auto marks = session->read([](const profile::Store& store) {
        return store.marks().between(0, std::numeric_limits<std::uint64_t>::max(), 0);
    });
    REQUIRE(marks.size() == 1);
    CHECK(marks[0].kind == profile::MarkKind::loss);
    CHECK(marks[0].reason == wire::LossReason::batches_missing);
    CHECK(marks[0].count == 0);
    // The sidecar has it, too.
    CHECK(parse_sidecar(encode_sidecar(session->info()))->lost_at_least);
}

TEST_CASE("a recording continues after damage in one frame, but not if the framing is lost") {
    const ScratchDirectory data;
    RecordingScene scene;
    std::string path;
    std::vector<std::size_t> ends;
    {
        auto catalog = Catalog::open(data.path(), {}).value();
        const auto session = catalog->create(scene.id(), "x").value();
        path = session->stream_path();
        for (int n = 0; n < 4; ++n) {
            const wire::Frame frame = scene.next();
            session->ingest(frame.flag, frame.payload, arrival).value();
            ends.push_back(fs::file_size(path));
        }
        session->status().detach_agent();
    }
    const std::string whole = content(path);
    for (const bool framing : {false, true}) {
        std::string bytes = whole + "half";
        const std::size_t at = framing ? ends[1] + 9 : ends[2] - 3;
        bytes[at] = static_cast<char>(bytes[at] ^ 1);
        put(path, bytes);
        auto catalog = Catalog::open(data.path(), {}).value();
        const auto session = catalog->find_recording(scene.id()).value();
        REQUIRE((session == nullptr) == framing);
        CHECK(content(path) == (framing ? bytes : bytes.substr(0, whole.size())));
        if (framing) continue;
        // The tail was removed because the agent sends it again. The damage stays.
        CHECK(session->info().notices.size() == 1);
        CHECK(session->info().notices.at(0).code == "file-damaged");
    }
}

TEST_CASE("an unreadable file is not a session, is reported once, and stays in place") {
    const ScratchDirectory data;
    auto catalog = Catalog::open(data.path(), {}).value();
    const Whole whole = recorded(data / "sessions/good.flw", 3, true);
    std::mt19937_64 random(9);
    std::string noise(20'000, '\0');
    for (char& byte : noise) byte = static_cast<char>(random());
    put(data / "sessions/empty.flw", "");
    fs::create_directory(data / "sessions/noise");
    put(data / "sessions/noise/stream.flw", noise);
    put(data / "sessions/header.flw", whole.bytes.substr(0, 12) + noise);
    const auto sessions = catalog->list().all();
    REQUIRE(sessions.size() == 1);
    CHECK(sessions[0].id == "good");
    CHECK(catalog->list().stored().size() == 1);
    CHECK(catalog->default_session().id == "good");
    const auto messages = catalog->list().unreadable();
    REQUIRE(messages.size() == 3);
    CHECK_THAT(messages[0], Catch::Contains("empty.flw is empty") && Catch::EndsWith("a good copy of the session."));
    CHECK_THAT(messages[1], Catch::Contains("header.flw") && Catch::Contains("20012 bytes"));
    CHECK(catalog->get("noise").error().code == ErrorCode::invalid);
    // A good copy in its place is a session again.
    put(data / "sessions/empty.flw", whole.bytes);
    CHECK(catalog->list().all().size() == 2);
    CHECK(catalog->list().unreadable().size() == 2);
    CHECK(fs::file_size(data / "sessions/noise/stream.flw") == noise.size());
}

TEST_CASE("half a frame at the end of a file that is being written is not damage") {
    const ScratchDirectory folder;
    const std::string path = folder / "s.flw";
    RecordingScene scene;
    auto session = Session::create("x", path, scene.id(), {}).value();
    const wire::Frame frame = scene.next();
    session->ingest(frame.flag, frame.payload, arrival).value();
    std::ofstream(path, std::ios::binary | std::ios::app) << "half";
    CHECK(opened(path).notices.empty());
    CHECK_FALSE(opened(path).lost_at_least);
    // A killed server no longer holds it.
    session.reset();
    CHECK(opened(path).notices.at(0).code == "file-cut");
}
