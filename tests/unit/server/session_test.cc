#include "server/session/session.h"

#include <catch2/catch.hpp>

#include <fstream>
#include <future>

#include "base/file.h"
#include "profile/symbols/symbol_cache.h"
#include "recording.h"
#include "server/session/side_files.h"
#include "symbol/symbolizer.h"

using namespace flamewire;
using namespace flamewire::server;
using flamewire::test::RecordingScene;
using flamewire::test::ScratchDirectory;

namespace {

std::shared_ptr<Session> begin(const ScratchDirectory& directory, const RecordingScene& scene) {
    return Session::create("s", directory / "stream.flw", scene.id(), {}).value();
}

Result<IngestResult> give(Session& session, const wire::Frame& frame,
                          std::int64_t arrival_ns = 1'800'000'000'000'000'000) {
    return session.ingest(frame.flag, frame.payload, arrival_ns);
}

std::uint64_t samples(const Session& session) {
    return session.read([](const profile::Store& store) { return store.total(0).samples; });
}

}  // namespace

TEST_CASE("a batch counts once, however often it arrives") {
    ScratchDirectory directory;
    RecordingScene scene;
    const auto session = begin(directory, scene);
    const wire::Frame first = scene.next(), second = scene.next();
    CHECK(give(*session, first)->stored);
    CHECK(samples(*session) == 5);
    const auto again = give(*session, first);
    REQUIRE(again);
    CHECK_FALSE(again->stored);
    CHECK(again->urgent);  // the agent waits for an acknowledgment that was lost
    CHECK(give(*session, second)->stored);
    CHECK(samples(*session) == 10);
    CHECK(session->stream().last_seq() == 2);
    CHECK(session->sync().value() == 2);
    CHECK(session->stream().synced_seq() == 2);
    const SessionInfo info = session->info();
    CHECK(info.batches == 2);
    CHECK(info.start_ns == 5'000'000'000);
    CHECK(info.newest_ns == 5'270'000'000);  // bucket 526 and its 10 ms
    CHECK(info.duration_ms == 500.0);        // until the second batch was closed
    REQUIRE(info.events.size() == 2);
    CHECK(info.events[0].name == "cycles");
    CHECK(info.events[0].weight == 80);
    CHECK(info.unresolved_percent == 100.0);
}

TEST_CASE("the notice about code without names stays until names arrive") {
    ScratchDirectory directory;
    RecordingScene scene;
    const auto session = begin(directory, scene);
    wire::Batch batch = scene.batch();
    batch.strings.insert(batch.strings.end(), {"[jit] node 42", "[jit] node 4", "made"});
    batch.modules.push_back({wire::ModuleKind::jit, 5, "", 0, 0, 1, 0});
    batch.modules.push_back({wire::ModuleKind::jit, 6, "", 0, 0, 2, 0});
    batch.locations.push_back({2, 0x1000, 0, 0, 0, 0});
    batch.locations.push_back({3, 0x1000, 0, 0, 0, 0});
    const wire::Notice of_42{"jit-names-missing", "node (process 42) runs code without names", ""},
        of_4{"jit-names-missing", "node (process 4) runs code without names", ""}, other{"other", "(process 42)", ""};
    batch.notices = {of_42, of_4, other};
    give(*session, scene.frame(batch)).value();
    CHECK(session->info().notices == std::vector{of_42, of_4, other});

    wire::Batch names = scene.batch();
    names.symbols = {{2, 0x1000, 0x100, 7}};
    give(*session, scene.frame(names)).value();
    session->status().publish(true);
    CHECK(session->info().notices == std::vector{of_4, other});
}

TEST_CASE("batches of other recordings, garbage and overlaps are refused and change nothing") {
    ScratchDirectory directory;
    RecordingScene scene, other(0x11);
    const auto session = begin(directory, scene);
    give(*session, scene.next()).value();
    CHECK(give(*session, other.next()).error().code == ErrorCode::not_found);
    CHECK(give(*session, {wire::Flag::batch, "no protobuf"}).error().code == ErrorCode::invalid);
    CHECK(give(*session, {wire::Flag::batch_zstd, "no zstd"}).error().code == ErrorCode::invalid);
    wire::Batch merged = scene.batch();
    merged.first_seq = 1;
    CHECK(give(*session, scene.frame(merged)).error().code == ErrorCode::invalid);
    CHECK(samples(*session) == 5);
    CHECK(Session::load("s", directory / "stream.flw", {}).value()->info().samples == 5);
}

TEST_CASE("missing batches cause a notice") {
    ScratchDirectory directory;
    RecordingScene scene;
    const auto session = begin(directory, scene);
    give(*session, scene.next()).value();
    scene.skip(3);
    CHECK(give(*session, scene.next())->stored);
    const auto notices = session->info().notices;
    REQUIRE(notices.size() == 1);
    CHECK(notices[0].code == "batches-missing");
    CHECK_THAT(notices[0].text, Catch::StartsWith("3 batches"));
}

TEST_CASE("a batch with an invalid reference is stored and not shown, live and in replay") {
    ScratchDirectory directory;
    RecordingScene scene;
    const auto session = begin(directory, scene);
    give(*session, scene.next()).value();
    wire::Batch bad = scene.batch();
    bad.rows[0].stack = 99;
    CHECK(give(*session, scene.frame(bad))->stored);
    CHECK(give(*session, scene.next())->stored);
    CHECK(samples(*session) == 10);
    const auto replayed = Session::load("s", directory / "stream.flw", {}).value();
    CHECK(samples(*replayed) == 10);
    CHECK(replayed->stream().last_seq() == 3);
    CHECK(replayed->info().notices == session->info().notices);
}

TEST_CASE("a restart continues the session after a tail torn at any byte") {
    ScratchDirectory directory;
    RecordingScene scene;
    const wire::Frame first = scene.next(), second = scene.next();
    std::uint64_t whole = 0;
    {
        const auto session = begin(directory, scene);
        give(*session, first).value();
        whole = std::filesystem::file_size(directory / "stream.flw");
        give(*session, second).value();
    }
    const auto full = std::filesystem::file_size(directory / "stream.flw");
    for (std::uint64_t cut = whole; cut < full; ++cut) {
        const std::string path = directory / "torn.flw";
        std::filesystem::copy_file(directory / "stream.flw", path, std::filesystem::copy_options::overwrite_existing);
        std::filesystem::resize_file(path, cut);
        const auto session = Session::load("s", path, {}).value();
        REQUIRE(session->recording() == scene.id());
        REQUIRE(session->stream().last_seq() == 1);
        REQUIRE(session->stream().make_writable());
        REQUIRE(give(*session, second)->stored);
        REQUIRE(samples(*session) == 10);
        REQUIRE(samples(*Session::load("s", path, {}).value()) == 10);
    }
}

TEST_CASE("epochs start with empty tables, and replay equals the live session") {
    ScratchDirectory directory;
    RecordingScene scene;
    const auto session = begin(directory, scene);
    give(*session, scene.next()).value();
    scene.new_epoch();
    CHECK(give(*session, scene.next())->stored);
    const auto ended = give(*session, scene.last());
    REQUIRE(ended);
    CHECK(ended->urgent);
    CHECK(ended->end->reason == "stopped");
    CHECK(session->status().ended());
    const auto replayed = Session::load("s", directory / "stream.flw", {}).value();
    SessionInfo live = session->info(), again = replayed->info();
    CHECK(again.samples == 15);
    CHECK(again.state == SessionState::ended);
    CHECK(again.end_reason == "stopped");
    CHECK(again.exit_code == 0);
    CHECK(again.started_ns == live.started_ns);
    CHECK(again.size_bytes == live.size_bytes);
    CHECK(again.events == live.events);
}

TEST_CASE("a full disk stores nothing and returns an error, and the same frame fits later") {
    ScratchDirectory directory;
    RecordingScene scene;
    const wire::Frame first = scene.next(), second = scene.next();
    {
        const auto session = begin(directory, scene);
        give(*session, first).value();
    }
    const auto session = Session::load("s", directory / "stream.flw", {}).value();
    const std::string hidden = directory / "hidden.flw";
    std::filesystem::rename(directory / "stream.flw", hidden);  // cannot be opened for appending
    CHECK(give(*session, second).error().code == ErrorCode::busy);
    CHECK(samples(*session) == 5);
    CHECK(session->info().notices.at(0).code == "disk");
    std::filesystem::rename(hidden, directory / "stream.flw");
    CHECK(give(*session, second)->stored);
    CHECK(samples(*session) == 10);
    CHECK(session->info().notices.empty());
}

TEST_CASE("states follow the agent") {
    ScratchDirectory directory;
    RecordingScene scene;
    const auto session = begin(directory, scene);
    session->status().attach_agent("127.0.0.1:1");
    CHECK(session->info().state == SessionState::live);
    session->status().set_paused(true);
    CHECK(session->info().state == SessionState::paused);
    session->status().detach_agent();
    CHECK(session->info().state == SessionState::waiting);
    give(*session, scene.last()).value();
    CHECK(session->info().state == SessionState::ended);
}

TEST_CASE("the counts of whole stacks are the same live, in replay and in the sidecar") {
    ScratchDirectory directory;
    RecordingScene scene;
    const auto session = begin(directory, scene);
    give(*session, scene.next()).value();
    scene.new_epoch();
    give(*session, scene.last()).value();
    const profile::Unwinding live = session->info().unwinding;
    CHECK(live.mode == "auto");
    CHECK(live.stack_bytes == 16384);
    CHECK(live.max_depth == 1024);
    // The second batch has totals since the beginning.
    const profile::UnwindCounts counts{10, 4, 4, 2, 0, 0, 18, 163840};
    CHECK(live.total == counts);
    CHECK(live.process_count == 1);
    CHECK(live.processes == std::vector<profile::UnwindProcess>{{42, "demo", "dwarf", "no frame pointers", counts}});
    const auto replayed = Session::load("s", directory / "stream.flw", {}).value();
    CHECK(replayed->info().unwinding == live);

    profile::Unwinding listed = parse_sidecar(encode_sidecar(session->info())).value().unwinding;
    CHECK(listed.processes.empty());
    listed.processes = live.processes;
    CHECK(listed == live);
}

TEST_CASE("the time without a connection to the agent is marked, live and in replay, on the target's clock") {
    ScratchDirectory directory;
    RecordingScene scene;
    const auto session = begin(directory, scene);
    const std::string hello = R"({"type":"hello"})";
    // The server's clock is 1,000 s ahead, and a frame takes 2 ms.
    const auto arrival = [](std::uint64_t target_ns) {
        return 1'700'000'000'000'000'000 + static_cast<std::int64_t>(target_ns) + 1'000'002'000'000;
    };
    REQUIRE(
        session->append(wire::Flag::reply, hello, arrival(test::start_ns)));  // before its first batch: no reconnect
    REQUIRE(give(*session, scene.next(), arrival(test::start_ns + 250'000'000)));
    REQUIRE(session->append(wire::Flag::reply, hello, arrival(test::start_ns + 4'000'000'000)));
    REQUIRE(session->append(wire::Flag::reply, R"({"type":"other"})", arrival(test::start_ns + 5'000'000'000)));
    REQUIRE(give(*session, scene.next(), arrival(test::start_ns + 6'000'000'000)));
    const auto marks = [](const Session& of) {
        return of.read([](const profile::Store& store) { return store.marks().between(0, UINT64_MAX, 0); });
    };
    REQUIRE(marks(*session).size() == 1);
    CHECK(marks(*session)[0].kind == profile::MarkKind::reconnect);
    CHECK(marks(*session)[0].start_ns == test::start_ns + 250'000'000);
    CHECK(marks(*session)[0].end_ns == test::start_ns + 4'000'000'000);
    const auto replayed = Session::load("s", directory / "stream.flw", {}).value();
    CHECK(marks(*replayed) == marks(*session));
}

TEST_CASE("of many processes, those with most samples are listed, and all are counted") {
    profile::Store store;
    wire::Batch batch;
    batch.recording_id[0] = 1;
    batch.seq = 1;
    for (std::uint32_t pid = 1; pid <= 1000; ++pid) {
        wire::Process process;
        process.pid = pid;
        batch.processes.push_back(process);
        wire::ProcessUnwind unwind;
        unwind.process = pid;
        unwind.samples = unwind.stopped = pid % 500 + 1;
        batch.unwinds.push_back(unwind);
    }
    REQUIRE(store.apply(batch));
    const profile::Unwinding unwinding = profile::unwinding_of(store);
    CHECK(unwinding.process_count == 1000);
    CHECK(unwinding.total.samples == 2 * 500 * 501 / 2);
    CHECK(unwinding.total.stopped == unwinding.total.samples);
    REQUIRE(unwinding.processes.size() == profile::Unwinding::most_processes);
    CHECK(unwinding.processes[0].pid == 499);
    CHECK(unwinding.processes[1].pid == 999);
    CHECK(unwinding.processes[0].counts.samples == 500);
    CHECK(unwinding.processes.back().counts.samples == 401);
}

TEST_CASE("an archive waits for the symbols that are being looked up") {
    ScratchDirectory directory;
    RecordingScene scene;
    const auto session = begin(directory, scene);
    give(*session, scene.next()).value();
    const std::string path = side_file(session->stream_path(), symbols_name);
    profile::CachedModule cached;
    cached.identity = session->read([](const profile::Store& store) { return store.modules()[1].identity; });
    cached.report.quality = symbol::Quality::symbols;
    cached.addresses = {{0x1000, false}};
    cached.frames = {.first = {0, 1}, .frames = {{.function = 1}}, .strings = {"", "main"}};
    replace_file(path, as_bytes_view(profile::encode_symbol_cache({&cached, 1}).bytes)).value();

    symbol::Symbolizer symbolizer{symbol::Config{}};
    std::future<void> waiting;
    bool waited = false;
    session->symbols().symbolize(symbolizer, [&] {
        std::filesystem::remove(path);
        session->symbols().try_write_cache();
        waiting = std::async(std::launch::async, [&] { session->symbols().write_cache(); });
        // A call that does not wait would end within this time.
        waited = waiting.wait_for(std::chrono::milliseconds(200)) == std::future_status::timeout;
    });
    waiting.get();
    CHECK(waited);
    CHECK(std::filesystem::exists(path));
}
