// A session file that was truncated at any byte of its last 4 KiB, as after a crash or on a full disk. It opens with
// the samples of the whole records before that byte, and its recording continues without lost or duplicate samples.
#include <catch2/catch.hpp>

#include <algorithm>
#include <fstream>

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

constexpr std::size_t cut_bytes = 4096;

// The ends of all records, found without the reader's code: 12 bytes of header, then 8 bytes of time, a big-endian
// length and a flag before each payload (docs/wire/session-file.md).
std::vector<std::size_t> record_ends(const std::string& bytes) {
    std::vector<std::size_t> ends;
    for (std::size_t at = 12; at + 13 <= bytes.size();) {
        std::size_t length = 0;
        for (std::size_t i = 8; i < 12; ++i) length = length << 8 | static_cast<unsigned char>(bytes[at + i]);
        ends.push_back(at += 13 + length);
    }
    return ends;
}

}  // namespace

TEST_CASE("a file truncated at every byte of its last 4 KiB keeps its whole records and continues") {
    const ScratchDirectory folder;
    const std::string whole_path = folder / "whole.flw", path = folder / "cut.flw";
    RecordingScene scene;
    std::vector<wire::Frame> frames;
    {
        auto session = Session::create("x", whole_path, scene.id(), {}).value();
        while (fs::file_size(whole_path) < cut_bytes + 2000) {
            frames.push_back(scene.next());
            session->ingest(frames.back().flag, frames.back().payload, arrival).value();
        }
    }
    const std::string bytes = content(whole_path);
    const auto ends = record_ends(bytes);
    REQUIRE(ends.size() == frames.size());
    REQUIRE(ends.back() == bytes.size());
    std::ofstream(path, std::ios::binary) << bytes;
    for (std::size_t size = bytes.size(); size >= bytes.size() - cut_bytes; --size) {
        fs::resize_file(path, size);
        const auto kept = static_cast<std::size_t>(std::ranges::upper_bound(ends, size) - ends.begin());
        const auto session = Session::load("x", path, {}).value();
        const SessionInfo info = session->info();
        // Five samples per batch (recording.h).
        const bool reported = !info.notices.empty() && info.notices[0].code == "file-cut";
        if (info.samples != 5 * kept || info.batches != kept || reported != (size != ends[kept - 1]))
            FAIL("cut at byte " << size << ": " << info.samples << " samples of " << kept << " whole records");
    }
    // Continuing appends to the file: once for each byte where the last record can be cut.
    const std::size_t before = ends[ends.size() - 2];
    for (std::size_t size = before; size < bytes.size(); ++size) {
        std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes.substr(0, size);
        const auto session = Session::load("x", path, {}).value();
        REQUIRE(session->stream().make_writable());
        // The agent sends unacknowledged batches again, and one that was stored already.
        for (const std::size_t again : {frames.size() - 2, frames.size() - 1})
            session->ingest(frames[again].flag, frames[again].payload, arrival).value();
        if (session->info().samples != 5 * frames.size() || content(path) != bytes || !session->info().notices.empty())
            FAIL("cut at byte " << size << " and continued");
    }
}
