#include "server/session/prune.h"

#include <catch2/catch.hpp>

#include "base/clock.h"
#include "recording.h"

using namespace flamewire;
using namespace flamewire::server;
using flamewire::test::RecordingScene;
using flamewire::test::ScratchDirectory;

namespace {

constexpr std::int64_t day_ns = std::int64_t{24} * 3600 * 1'000'000'000;
constexpr std::int64_t now = 1000 * day_ns;

// "a" is the oldest. Each has 10 bytes, they are one day apart, and the newest was written today.
std::vector<StoredSession> stored(const std::string& names) {
    std::vector<StoredSession> sessions;
    for (std::size_t i = 0; i < names.size(); ++i)
        sessions.push_back({std::string(1, names[i]), now - static_cast<std::int64_t>(names.size() - 1 - i) * day_ns,
                            10, false, false});
    return sessions;
}

std::string ids(const std::vector<Pruned>& pruned) {
    std::string text;
    for (const Pruned& it : pruned) text += it.id;
    return text;
}

}  // namespace

TEST_CASE("nothing is deleted without a rule") { CHECK(select_expired(stored("abcdef"), {}, now).empty()); }

TEST_CASE("the oldest go first, by count, age and size") {
    CHECK(ids(select_expired(stored("abcdef"), {.count = 4}, now)) == "ab");
    CHECK(ids(select_expired(stored("abcdef"), {.count = 6}, now)).empty());
    CHECK(ids(select_expired(stored("abcdef"), {.days = 4}, now)) == "ab");
    CHECK(ids(select_expired(stored("abcdef"), {.size_bytes = 39}, now)) == "abc");
    CHECK(ids(select_expired(stored("abcdef"), {.size_bytes = 40}, now)) == "ab");
    CHECK(ids(select_expired(stored("abcdef"), {.count = 5, .days = 5, .size_bytes = 20}, now)) == "abcd");
    // The order on disk does not matter.
    auto mixed = stored("abcdef");
    std::swap(mixed[0], mixed[4]);
    CHECK(ids(select_expired(mixed, {.count = 4}, now)) == "ab");
    const auto reasons = select_expired(stored("abc"), {.count = 2}, now);
    REQUIRE(reasons.size() == 1);
    CHECK(reasons[0].reason == "--keep-count 2: it was the oldest of 3");
}

TEST_CASE("sessions in use count but stay, pinned ones neither count nor go") {
    auto sessions = stored("abcdef");
    sessions[0].in_use = true;
    CHECK(ids(select_expired(sessions, {.count = 4}, now)) == "bc");
    CHECK(ids(select_expired(sessions, {.days = 4}, now)) == "b");
    sessions[1].keep = true;
    CHECK(ids(select_expired(sessions, {.count = 4}, now)) == "c");
    CHECK(ids(select_expired(sessions, {.size_bytes = 40}, now)) == "c");
    for (StoredSession& session : sessions) session.keep = true;
    CHECK(select_expired(sessions, {.count = 1, .days = 1, .size_bytes = 1}, now).empty());
}

TEST_CASE("a recording is not deleted because it ends, but because of its age") {
    CHECK(ids(select_expired(stored("abc"), {.size_bytes = 1}, now)) == "ab");
    auto sessions = stored("abc");
    sessions[0].in_use = sessions[1].in_use = true;
    CHECK(select_expired(sessions, {.count = 1, .size_bytes = 1}, now).empty());
    CHECK(ids(select_expired(stored("a"), {.days = 1}, now + day_ns)) == "a");
    // A clock that was set back causes no deletion.
    CHECK(select_expired(stored("abc"), {.days = 1}, 0).empty());
}

TEST_CASE("sizes are read with their unit") {
    CHECK(parse_size("4096").value() == 4096);
    CHECK(parse_size("3K").value() == 3072);
    CHECK(parse_size("500M").value() == std::uint64_t{500} << 20);
    CHECK(parse_size("20G").value() == std::uint64_t{20} << 30);
    CHECK(parse_size("2TiB").value() == std::uint64_t{2} << 40);
    for (const char* text : {"", "0", "M", "-1G", "1.5G", "1X", "1 G", "99999999999999999999", "99999999999T", "1GG"})
        CHECK_FALSE(parse_size(text));
}

TEST_CASE("the pruner deletes unused sessions from disk") {
    const ScratchDirectory data;
    std::vector<std::string> names;
    {
        auto catalog = Catalog::open(data.path(), {}).value();
        for (std::uint8_t i = 1; i <= 4; ++i) {
            RecordingScene scene(i);
            auto session = catalog->create(scene.id(), "demo").value();
            const wire::Frame frame = scene.last();
            session->ingest(frame.flag, frame.payload, 1'800'000'000'000'000'000).value();
            session->status().detach_agent();
            catalog->save(*session);
            names.push_back(session->id());
        }
    }
    auto catalog = Catalog::open(data.path(), {}).value();
    catalog->relabel(names[0], {.name = {}, .tags = {}, .keep = true}).value();
    const auto opened = catalog->get(names[1]).value();
    CHECK(Pruner(*catalog, {}).run() == 0);
    CHECK(Pruner(*catalog, {.count = 1}).run() == 1);
    std::vector<std::string> left;
    for (const SessionInfo& info : catalog->list().all()) left.push_back(info.id);
    std::ranges::sort(left);
    CHECK(left == std::vector{names[0], names[1], names[3]});
    CHECK_FALSE(std::filesystem::exists(data / ("sessions/" + names[2])));
    CHECK(catalog->remove_unused(names[0]).error().code == ErrorCode::busy);
    CHECK(catalog->remove_unused(names[1]).error().code == ErrorCode::busy);
    CHECK(catalog->remove(names[0]));
}
