#include "server/session/catalog.h"

#include <catch2/catch.hpp>

#include <fstream>

#include "base/file.h"
#include "recording.h"

using namespace flamewire;
using namespace flamewire::server;
using flamewire::test::RecordingScene;
using flamewire::test::ScratchDirectory;
namespace fs = std::filesystem;

namespace {

constexpr std::int64_t arrival = 1'800'000'000'000'000'000;

std::unique_ptr<Catalog> open(const ScratchDirectory& data) { return Catalog::open(data.path(), {}).value(); }

std::shared_ptr<Session> record(Catalog& catalog, RecordingScene& scene, bool end) {
    auto session = catalog.create(scene.id(), "pid 42 (demo)").value();
    for (const wire::Frame& frame : {scene.next(), end ? scene.last() : scene.next()})
        session->take(frame.flag, frame.payload, arrival).value();
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
    CHECK(directory_word("../../etc/x y") == "etc_x_y");
    CHECK(directory_word("///") == "session");
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
        id = record(*catalog, scene, false)->id();  // no sidecar: as after kill -9
    }
    auto catalog = open(data);
    CHECK(catalog->loaded(id) == nullptr);
    const auto session = catalog->of_recording(scene.id()).value();
    REQUIRE(session);
    CHECK(session->id() == id);
    CHECK(session->last_seq() == 2);
    const wire::Frame frame = scene.next();
    CHECK(session->take(frame.flag, frame.payload, arrival)->stored);
    CHECK(catalog->list().size() == 1);
    CHECK(catalog->of_recording(test::recording_id(0x99)).value() == nullptr);
}

TEST_CASE("the list survives without sidecars and knows stale ones") {
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
        second->take(more.flag, more.payload, arrival).value();  // after its sidecar
    }
    fs::remove(data / ("sessions/" + first_id + "/session.json"));
    auto catalog = open(data);
    const auto sessions = catalog->list();
    REQUIRE(sessions.size() == 2);
    for (const SessionInfo& info : sessions) {
        CHECK(info.samples == (info.id == first_id ? 10 : 15));
        CHECK(info.target == "pid 42 (demo)");
    }
    CHECK(fs::exists(data / ("sessions/" + first_id + "/session.json")));
}

TEST_CASE("files that somebody put there are listed and replayed; rubbish is listed with its reason") {
    ScratchDirectory data, elsewhere;
    RecordingScene scene;
    {
        auto session = Session::create("x", elsewhere / "stream.flw", scene.id(), {}).value();
        const wire::Frame frame = scene.last();
        session->take(frame.flag, frame.payload, arrival).value();
    }
    auto catalog = open(data);
    CHECK(catalog->list().empty());
    fs::copy_file(elsewhere / "stream.flw", data / "sessions/dropped.flw");
    fs::create_directory(data / "sessions/noise");
    std::ofstream(data / "sessions/noise/stream.flw") << "this is no session";
    const auto sessions = catalog->list();
    REQUIRE(sessions.size() == 2);
    for (const SessionInfo& info : sessions) {
        if (info.id == "dropped") CHECK(info.samples == 5);
        if (info.id == "noise") CHECK(info.notices.at(0).code == "stream-unreadable");
    }
    CHECK(catalog->get("dropped").value()->info().samples == 5);
    CHECK_FALSE(catalog->get("noise"));
    CHECK(catalog->get("../../etc").error().code == ErrorCode::not_found);
    CHECK(catalog->remove("dropped"));
    CHECK_FALSE(fs::exists(data / "sessions/dropped.flw"));
}

TEST_CASE("which session is meant without a name") {
    ScratchDirectory data;
    RecordingScene one(1), two(2), three(3);
    auto catalog = open(data);
    CHECK(catalog->default_session().id.empty());
    const auto ended = record(*catalog, one, true);
    CHECK(catalog->default_session().id == ended->id());
    const auto live = record(*catalog, two, false);
    live->attach_agent("a");
    CHECK(catalog->default_session().id == live->id());
    const auto other = record(*catalog, three, false);
    other->attach_agent("b");
    CHECK(catalog->default_session().id.empty());
    CHECK(catalog->default_session().several.size() == 2);
}

TEST_CASE("a live session is not removed, an ended one is gone from disk") {
    ScratchDirectory data;
    RecordingScene scene;
    auto catalog = open(data);
    const auto session = record(*catalog, scene, false);
    session->attach_agent("a");
    CHECK(catalog->remove(session->id()).error().code == ErrorCode::busy);
    const wire::Frame last = scene.last();
    session->take(last.flag, last.payload, arrival).value();
    session->detach_agent();
    CHECK(catalog->remove(session->id()));
    CHECK_FALSE(fs::exists(data / ("sessions/" + session->id())));
    CHECK(catalog->remove(session->id()).error().code == ErrorCode::not_found);
}

TEST_CASE("the sidecar says again what it was told") {
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
