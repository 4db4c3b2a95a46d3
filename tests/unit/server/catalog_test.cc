#include "server/session/catalog.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <fstream>
#include <vector>

#include "base/file.h"
#include "recording.h"
#include "server/session/session_name.h"

using namespace flamewire;
using namespace flamewire::server;
using flamewire::test::arrival;
using flamewire::test::RecordingScene;
using flamewire::test::ScratchDirectory;
namespace fs = std::filesystem;

namespace {

std::unique_ptr<Catalog> open(const ScratchDirectory& data) { return Catalog::open(data.path(), {}).value(); }

std::shared_ptr<Session> record(Catalog& catalog, RecordingScene& scene, bool end) {
    auto session = catalog.create(scene.id(), "pid 42 (demo)").value();
    for (const wire::Frame& frame : {scene.next(), end ? scene.last() : scene.next()})
        session->ingest(frame.flag, frame.payload, arrival).value();
    return session;
}

}  // namespace

TEST_CASE("a directory is named after time, target and recording") {
    ScratchDirectory data;
    RecordingScene scene(0xC0);
    auto catalog = open(data);
    const auto session = record(*catalog, scene, true);
    const std::string& id = session->id();
    CHECK_THAT(id, Catch::Matches("[0-9]{8}_[0-9]{6}_pid_42_demo_c0000000"));
    CHECK(fs::is_regular_file(data / ("sessions/" + id + "/stream.flw")));
    CHECK(sanitized_name("../../etc/x y") == "etc_x_y");
    CHECK(sanitized_name("///") == "session");
}

TEST_CASE("one data directory belongs to one server") {
    ScratchDirectory data;
    auto catalog = open(data);
    const auto second = Catalog::open(data.path(), {});
    REQUIRE_FALSE(second);
    CHECK(second.error().code == ErrorCode::busy);
    CHECK_THAT(second.error().message, Catch::Contains("--data-dir"));
    catalog.reset();
    CHECK(Catalog::open(data.path(), {}));
}

TEST_CASE("a restart finds the recording and continues it in the same file") {
    ScratchDirectory data;
    RecordingScene scene;
    std::string id;
    {
        auto catalog = open(data);
        id = record(*catalog, scene, false)->id();  // no sidecar, as after kill -9
    }
    auto catalog = open(data);
    CHECK(catalog->loaded(id) == nullptr);
    const auto session = catalog->find_recording(scene.id()).value();
    REQUIRE(session);
    CHECK(session->id() == id);
    CHECK(session->stream().last_seq() == 2);
    const wire::Frame frame = scene.next();
    CHECK(session->ingest(frame.flag, frame.payload, arrival)->stored);
    CHECK(catalog->list().all().size() == 1);
    CHECK(catalog->find_recording(test::recording_id(0x99)).value() == nullptr);
}

TEST_CASE("a recording continues in its own session, never in an imported copy of it, also after a restart") {
    ScratchDirectory data, files;
    RecordingScene scene;
    const std::string copy = files / "zzz.flw";  // the last one by name
    std::string id;
    {
        auto catalog = open(data);
        const auto session = record(*catalog, scene, false);
        id = session->id();
        fs::copy_file(session->stream_path(), copy);
        const std::string imported = catalog->import_stream(copy, "zzz.flw").value();
        CHECK(imported > id);
        CHECK(catalog->find_recording(scene.id()).value()->id() == id);
    }
    auto catalog = open(data);
    REQUIRE(catalog->list().all().size() == 2);
    CHECK(catalog->find_recording(scene.id()).value()->id() == id);
    REQUIRE(catalog->remove(id));
    CHECK(catalog->find_recording(scene.id()).value() == nullptr);
    const std::string imported = catalog->list().all().at(0).id;
    REQUIRE(catalog->remove(imported));
    CHECK(fs::is_empty(data / "sessions"));
}

TEST_CASE("the list works without sidecars and detects outdated ones") {
    ScratchDirectory data;
    RecordingScene one(1), two(2);
    std::string first_id, second_id;
    {
        auto catalog = open(data);
        const auto first = record(*catalog, one, true);
        const auto second = record(*catalog, two, false);
        first_id = first->id();
        second_id = second->id();
        catalog->save(*first);
        catalog->save(*second);
        const wire::Frame more = two.next();
        second->ingest(more.flag, more.payload, arrival).value();  // after its sidecar was written
    }
    fs::remove(data / ("sessions/" + first_id + "/session.json"));
    auto catalog = open(data);
    const auto sessions = catalog->list().all();
    REQUIRE(sessions.size() == 2);
    for (const SessionInfo& info : sessions) {
        CHECK(info.samples == (info.id == first_id ? 10 : 15));
        CHECK(info.target == "pid 42 (demo)");
    }
    CHECK(fs::exists(data / ("sessions/" + first_id + "/session.json")));
}

TEST_CASE("session files that users copy there are listed and replayed, other files are not") {
    ScratchDirectory data, elsewhere;
    RecordingScene scene;
    {
        auto session = Session::create("x", elsewhere / "stream.flw", scene.id(), {}).value();
        const wire::Frame frame = scene.last();
        session->ingest(frame.flag, frame.payload, arrival).value();
    }
    auto catalog = open(data);
    CHECK(catalog->list().all().empty());
    fs::copy_file(elsewhere / "stream.flw", data / "sessions/dropped.flw");
    fs::create_directory(data / "sessions/noise");
    std::ofstream(data / "sessions/noise/stream.flw") << "this is no session";
    const auto sessions = catalog->list().all();
    REQUIRE(sessions.size() == 1);
    CHECK(sessions[0].id == "dropped");
    CHECK(sessions[0].samples == 5);
    CHECK_THAT(catalog->list().unreadable().at(0), Catch::Contains("noise"));
    CHECK(catalog->get("dropped").value()->info().samples == 5);
    CHECK_FALSE(catalog->get("noise"));
    CHECK(catalog->get("../../etc").error().code == ErrorCode::not_found);
    CHECK(catalog->remove("dropped"));
    CHECK_FALSE(fs::exists(data / "sessions/dropped.flw"));
}

TEST_CASE("the default session") {
    ScratchDirectory data;
    RecordingScene one(1), two(2), three(3);
    auto catalog = open(data);
    CHECK(catalog->default_session().id.empty());
    const auto ended = record(*catalog, one, true);
    CHECK(catalog->default_session().id == ended->id());
    const auto live = record(*catalog, two, false);
    live->status().attach_agent("a");
    CHECK(catalog->default_session().id == live->id());
    const auto other = record(*catalog, three, false);
    other->status().attach_agent("b");
    CHECK(catalog->default_session().id.empty());
    CHECK(catalog->default_session().several.size() == 2);
}

TEST_CASE("a live session is not removed, an ended one is deleted from disk") {
    ScratchDirectory data;
    RecordingScene scene;
    auto catalog = open(data);
    const auto session = record(*catalog, scene, false);
    session->status().attach_agent("a");
    CHECK(catalog->remove(session->id()).error().code == ErrorCode::busy);
    const wire::Frame last = scene.last();
    session->ingest(last.flag, last.payload, arrival).value();
    session->status().detach_agent();
    CHECK(catalog->remove(session->id()));
    CHECK_FALSE(fs::exists(data / ("sessions/" + session->id())));
    CHECK(catalog->remove(session->id()).error().code == ErrorCode::not_found);
}

TEST_CASE("a label is stored beside the stream, survives without the sidecar and is deleted with the session") {
    ScratchDirectory data, elsewhere;
    RecordingScene scene, dropped(7);
    {
        auto session = Session::create("x", elsewhere / "stream.flw", dropped.id(), {}).value();
        const wire::Frame frame = dropped.last();
        session->ingest(frame.flag, frame.payload, arrival).value();
    }
    std::string id;
    const Label label{"before", {{"build", "17"}}, true};
    const LabelChange change{"before", {{"build", "17"}}, true};
    {
        auto catalog = open(data);
        fs::copy_file(elsewhere / "stream.flw", data / "sessions/board.flw");
        const auto session = record(*catalog, scene, false);  // live
        id = session->id();
        CHECK(catalog->relabel(id, change)->label == label);
        CHECK(session->info().label == label);
        CHECK(catalog->relabel("board", change)->label == label);
        const wire::Frame more = scene.next();
        session->ingest(more.flag, more.payload, arrival).value();  // publishes again
        CHECK(session->info().label == label);
        catalog->save(*session);
        CHECK(catalog->relabel("none", change).error().code == ErrorCode::not_found);
        CHECK(catalog->relabel(id, {std::string(300, 'x'), {}, {}}).error().code == ErrorCode::invalid);
    }
    CHECK(fs::exists(data / ("sessions/" + id + "/label.json")));
    CHECK(fs::exists(data / "sessions/board.flw.label.json"));
    CHECK_THAT(read_file(data / ("sessions/" + id + "/session.json")).value(), !Catch::Contains("before"));
    fs::remove(data / ("sessions/" + id + "/session.json"));
    auto catalog = open(data);
    for (const SessionInfo& info : catalog->list().all()) CHECK(info.label == label);
    CHECK(catalog->get(id).value()->info().label == label);
    CHECK(catalog->remove("board"));
    CHECK_FALSE(fs::exists(data / "sessions/board.flw.label.json"));
    // A damaged label file causes a notice, and the next change replaces it.
    std::ofstream(data / ("sessions/" + id + "/label.json")) << "{";
    catalog.reset();
    catalog = open(data);
    const SessionInfo spoiled = catalog->list().all().at(0);
    CHECK(spoiled.label == Label{});
    REQUIRE_FALSE(spoiled.notices.empty());
    CHECK(spoiled.notices.back().code == "label-unreadable");
    CHECK_THAT(spoiled.notices.back().text, Catch::Contains("label.json"));
    CHECK(catalog->relabel(id, change)->notices.empty());
}

TEST_CASE("new sessions and imports get the server's tags") {
    ScratchDirectory data;
    const Tags tags{{"lab", "7"}, {"board", "imx8"}};
    RecordingScene one(1), two(2);
    auto catalog = Catalog::open(data.path(), {}, tags).value();
    const auto session = record(*catalog, one, true);
    CHECK(session->info().label.tags == tags);
    const std::string copy = catalog->import_stream(session->stream_path(), "file.flw").value();
    const LabelChange without_lab{{}, {{"lab", std::nullopt}}, {}};
    CHECK(catalog->relabel(session->id(), without_lab)->label.tags == Tags{{"board", "imx8"}});
    catalog.reset();
    catalog = Catalog::open(data.path(), {}, {{"other", "run"}}).value();
    for (const SessionInfo& info : catalog->list().all())
        CHECK(info.label.tags == (info.id == copy ? tags : Tags{{"board", "imx8"}}));
}

TEST_CASE("sessions are found by words, page by page") {
    ScratchDirectory data;
    auto catalog = open(data);
    std::vector<std::string> ids;
    for (std::uint8_t i = 1; i <= 5; ++i) {
        RecordingScene scene(i);
        ids.push_back(record(*catalog, scene, true)->id());
    }
    (void)catalog->relabel(ids[1], {"Slow Start", {{"branch", "Main"}}, {}}).value();
    (void)catalog->relabel(ids[3], {{}, {{"branch", "topic"}}, {}}).value();
    const auto found = [&](std::string_view words) { return catalog->list().search({.words = words}).total; };
    for (int restarted = 0; restarted < 2; ++restarted) {
        CHECK(found("") == 5);
        CHECK(found("DEMO pid") == 5);
        CHECK(found("board") == 5);  // the host
        CHECK(found("faults") == 5);
        CHECK(found("slow") == 1);
        CHECK(found("start  SLOW ") == 1);
        CHECK(found("branch=main") == 1);
        CHECK(found("branch=") == 2);
        CHECK(found("slow topic") == 0);
        CHECK(found(ids[2]) == 1);
        const SessionPage page = catalog->list().search({.words = {}, .offset = 1, .limit = 2});
        CHECK(page.total == 5);
        CHECK(page.sessions.size() == 2);
        const auto all = catalog->list().all();
        CHECK(page.sessions[0].id == all[1].id);
        CHECK(page.sessions[1].id == all[2].id);
        std::uint64_t size = 0;
        for (const SessionInfo& info : all) size += info.size_bytes;
        CHECK(page.size_bytes == size);
        CHECK(catalog->list().search({.words = {}, .offset = 9, .limit = 2}).sessions.empty());
        catalog.reset();
        catalog = open(data);
    }
}

TEST_CASE("the list follows other programs' changes in the directory") {
    ScratchDirectory data;
    RecordingScene scene(1);
    std::string id;
    {
        auto catalog = open(data);
        const auto session = record(*catalog, scene, true);
        id = session->id();
        catalog->save(*session);
    }
    // An old modification time, so that the next listing has no reason to read the directory.
    const auto long_ago = fs::file_time_type::clock::now() - std::chrono::hours(1);
    fs::last_write_time(data / "sessions", long_ago);
    auto catalog = open(data);
    CHECK(catalog->list().all().size() == 1);
    fs::copy_file(data / ("sessions/" + id + "/stream.flw"), data / "sessions/copy.flw");
    CHECK(catalog->list().all().size() == 2);
    // A directory that gets its stream later does not change the parent directory.
    fs::create_directory(data / "sessions/later");
    fs::last_write_time(data / "sessions", long_ago);
    CHECK(catalog->list().all().size() == 2);
    fs::copy_file(data / "sessions/copy.flw", data / "sessions/later/stream.flw");
    CHECK(catalog->list().all().size() == 3);
    fs::remove(data / "sessions/later/stream.flw");
    CHECK(catalog->list().all().size() == 2);
    CHECK_FALSE(catalog->exists("later"));
    fs::remove(data / "sessions/copy.flw");
    fs::resize_file(data / ("sessions/" + id + "/stream.flw"), 40);
    const auto left = catalog->list().all();
    REQUIRE(left.size() == 1);
    CHECK(left[0].samples == 0);
    CHECK(left[0].size_bytes == 40);
}

TEST_CASE("a sidecar has the values that were written") {
    SessionInfo info;
    info.id = "a";
    info.recording = "00ff";
    info.target = "odd \xff name";
    info.started_ns = 1'700'000'000'123'000'000;
    info.events = {{"cycles", "cycles", 7, 70, 99, 10}};
    info.losses = {{"ring_full", 3, true, "cycles", 1.5, 2.5}};
    info.notices = {{"code", "text", "remedy"}};
    info.exit_code = -3;
    info.pids = {1, 2};
    const auto parsed = parse_sidecar(encode_sidecar(info));
    REQUIRE(parsed);
    CHECK(parsed->started_ns == info.started_ns);
    CHECK(parsed->events == info.events);
    CHECK(parsed->losses == info.losses);
    CHECK(parsed->notices == info.notices);
    CHECK(parsed->exit_code == -3);
    CHECK(parsed->pids == info.pids);
    CHECK(parsed->target == "odd \xEF\xBF\xBD name");
    CHECK_FALSE(parse_sidecar("{}"));
    CHECK_FALSE(parse_sidecar("[1,2"));
}

TEST_CASE("the stream contains the key that began the recording") {
    ScratchDirectory data;
    RecordingScene scene, clear(0xC1);
    {
        auto catalog = open(data);
        for (const auto& [one, key] : {std::pair{&scene, "0123456789abcdef"}, {&clear, ""}}) {
            auto session = catalog->create(one->id(), "demo", key).value();
            const wire::Frame frame = one->next();
            session->ingest(frame.flag, frame.payload, arrival).value();
            CHECK(session->owner_key() == key);
        }
    }
    // No sidecar was written: only the stream has the key.
    auto catalog = open(data);
    CHECK(catalog->find_recording(scene.id()).value()->owner_key() == "0123456789abcdef");
    CHECK(catalog->find_recording(clear.id()).value()->owner_key().empty());
    CHECK(catalog->find_recording(scene.id()).value()->info().samples == 5);
}

TEST_CASE("a session that is being written is not unloaded, however long it takes") {
    ScratchDirectory data;
    auto catalog = open(data);
    RecordingScene scene(1);
    const auto written = record(*catalog, scene, true);
    written->status().detach_agent();
    std::vector<std::string> others;
    for (std::uint8_t i = 2; i <= 8; ++i) {
        RecordingScene other(i);
        const auto session = record(*catalog, other, true);
        session->status().detach_agent();
        session->last_used_ns = i;
        others.push_back(session->id());
    }
    catalog->unload_idle(4);
    CHECK(catalog->opened(written->id()) == written);
    CHECK(std::ranges::count_if(others, [&](const std::string& id) { return catalog->opened(id) != nullptr; }) == 4);
}
