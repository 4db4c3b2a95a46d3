// Source files stored with a session: limited in number and bytes, with the heaviest first.
#include "server/source/bundle_sources.h"

#include <catch2/catch.hpp>
#include <fmt/format.h>

#include <fstream>

#include "recording.h"
#include "server/session/source_bundle.h"

using namespace flamewire;
using namespace flamewire::server;
using flamewire::test::RecordingScene;
using flamewire::test::ScratchDirectory;

namespace {

std::string name_of(const ScratchDirectory& directory, std::size_t file) {
    return fmt::format("{}/{}.js", directory.path(), file);
}

// A session with samples in `count` source files. File i has i + 1 samples.
std::shared_ptr<Session> session_of_files(const ScratchDirectory& directory, std::size_t count) {
    RecordingScene scene;
    auto session = Session::create("s", directory / "stream.flw", scene.id(), {}).value();
    wire::Batch batch = scene.batch();
    batch.locations.clear();
    batch.stacks.clear();
    batch.rows.clear();
    for (std::size_t i = 0; i < count; ++i) {
        batch.strings.push_back(name_of(directory, i));
        const auto id = static_cast<wire::Id>(i + 1);
        batch.locations.push_back({0, 0, 0, 2, static_cast<wire::Id>(batch.strings.size()), 7});
        batch.stacks.push_back({0, id});
        batch.rows.push_back({500, 1, 1, 0, id, id, 10 * std::uint64_t{id}});
    }
    const wire::Frame frame = scene.frame(batch);
    REQUIRE(session->ingest(frame.flag, frame.payload, 1'800'000'000'000'000'000));
    session->status().publish(true);
    return session;
}

void write(const ScratchDirectory& directory, std::size_t file, std::size_t bytes) {
    std::ofstream(name_of(directory, file)) << std::string(bytes, 'x');
}

}  // namespace

TEST_CASE("sources beyond 5,000 files or 64 MiB are not kept") {
    const ScratchDirectory directory;
    SourceLookup sources({directory.path(), "", {}});
    SECTION("files") {
        const auto session = session_of_files(directory, 5001);
        for (std::size_t file = 1; file <= 5000; ++file) write(directory, file, 3);
        auto kept = bundle_sources(*session, sources).value();
        CHECK(kept.files == 5000);
        CHECK(kept.bytes == 15'000);
        CHECK(kept.no_room.empty());
        CHECK(kept.not_found == std::vector{name_of(directory, 0)});
        write(directory, 0, 3);
        kept = bundle_sources(*session, sources).value();
        CHECK(kept.files == 5000);
        CHECK(kept.not_found.empty());
        CHECK(kept.no_room == std::vector{name_of(directory, 0)});  // it has the fewest samples
        CHECK(read_source_bundle(session->stream_path()).value().size() == 5000);
    }
    SECTION("bytes") {
        const auto session = session_of_files(directory, 4);
        // Each file counts with its name, its path, and 32 bytes.
        const std::size_t beside = 2 * name_of(directory, 0).size() + 32, quarter = (std::size_t{16} << 20) - beside;
        for (std::size_t file = 0; file < 4; ++file) write(directory, file, quarter);
        auto kept = bundle_sources(*session, sources).value();
        CHECK(kept.files == 4);
        CHECK(kept.bytes == 4 * quarter);
        CHECK(read_source_bundle(session->stream_path()).value().size() == 4);
        write(directory, 3, quarter + 1);
        kept = bundle_sources(*session, sources).value();
        CHECK(kept.files == 3);
        CHECK(kept.no_room == std::vector{name_of(directory, 0)});
    }
}
