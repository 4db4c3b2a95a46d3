#include "server/session/session_loader.h"

#include <asio/post.hpp>
#include <catch2/catch.hpp>

#include <algorithm>
#include <future>
#include <stdexcept>

#include "recording.h"
#include "symbol/symbolizer.h"
#include "wire/session_file.h"

using namespace flamewire;
using namespace flamewire::server;
using flamewire::test::RecordingScene;
using flamewire::test::ScratchDirectory;

namespace {

constexpr std::int64_t arrival = 1'700'000'000'000'000'000;
constexpr std::uint64_t samples_per_batch = 5;

// A session that takes longer to read, on this machine, than the delay before partial sessions are shown.
struct LongSession {
    ScratchDirectory data;
    std::unique_ptr<Catalog> catalog = Catalog::open(data.path(), {}).value();
    RecordingScene scene;
    std::string path = data / "sessions/long.flw";
    std::uint64_t batches = 0;

    LongSession() {
        auto writer = wire::SessionWriter::create(path).value();
        bool shown = false;
        for (std::uint64_t more = 8192; !shown; more *= 2) {
            REQUIRE(batches < 4'000'000);
            for (std::uint64_t i = 0; i < more; ++i) {
                const wire::Frame frame = scene.next();
                writer.append(arrival, frame.flag, frame.payload).value();
            }
            batches += more;
            (void)Session::load("probe", path, {}, [&](const auto&) { shown = true; }).value();
        }
        // Twice as many, because the machine may have been busy just then.
        for (std::uint64_t i = 0; i < batches; ++i) {
            const wire::Frame frame = scene.next();
            writer.append(arrival, frame.flag, frame.payload).value();
        }
        batches *= 2;
    }
};

std::uint64_t samples_of(const Session& session) {
    return session.read([](const profile::Store& store) { return store.total(0).samples; });
}

}  // namespace

TEST_CASE("a long session is shown while it is being read, and whole in the end") {
    LongSession fixture;
    std::uint64_t times = 0, samples = 0, read_bytes = 0;
    const auto session = fixture.catalog->get("long", [&](const std::shared_ptr<Session>& begun) {
        ++times;
        const SessionInfo info = begun->info();
        REQUIRE(info.reading);
        CHECK(info.reading->read_bytes > read_bytes);
        CHECK(info.reading->read_bytes <= info.reading->total_bytes);
        CHECK(info.reading->total_bytes == std::filesystem::file_size(fixture.path));
        CHECK(info.end_reason.empty());
        CHECK(info.samples > samples);
        CHECK(samples_of(*begun) == info.samples);
        // Requests that need the whole session do not get the partial one.
        CHECK(fixture.catalog->opened("long") == begun);
        CHECK(fixture.catalog->loaded("long") == nullptr);
        CHECK(fixture.catalog->all_loaded().empty());
        fixture.catalog->save(*begun);
        CHECK_FALSE(std::filesystem::exists(fixture.path + ".json"));
        samples = info.samples;
        read_bytes = info.reading->read_bytes;
    });
    REQUIRE(session);
    CHECK(times > 0);
    CHECK(samples < fixture.batches * samples_per_batch);
    CHECK(samples_of(**session) == fixture.batches * samples_per_batch);
    CHECK_FALSE((*session)->info().reading);
    CHECK_FALSE((*session)->info().end_reason.empty());
    CHECK(fixture.catalog->loaded("long") == *session);
}

TEST_CASE("a request that accepts a partial session is answered before the session is whole") {
    LongSession fixture;
    symbol::Symbolizer symbolizer{symbol::Config{}};
    Symbolization symbolization(symbolizer, [](const auto&) {});
    std::atomic<int> changes{0};
    SessionLoader loader(*fixture.catalog, symbolization, [&](const auto&) { ++changes; });
    std::promise<bool> whole;
    std::promise<std::uint64_t> something;
    // In this order, so that the order of requests does not determine the order of replies.
    loader.load("long", SessionLoader::Extent::complete,
                [&] { whole.set_value(fixture.catalog->loaded("long") != nullptr); });
    loader.load("long", SessionLoader::Extent::partial, [&] {
        const auto session = fixture.catalog->opened("long");
        something.set_value(session && session->status().reading() ? samples_of(*session) : 0);
    });
    const std::uint64_t samples = something.get_future().get();
    CHECK(samples > 0);
    CHECK(samples < fixture.batches * samples_per_batch);
    CHECK(whole.get_future().get());
    CHECK(changes >= 2);  // once for a part, once for the whole
    // The session is loaded now: nothing waits, and nothing is read again.
    std::promise<void> again;
    loader.load("long", SessionLoader::Extent::complete, [&] { again.set_value(); });
    again.get_future().get();
    CHECK(samples_of(*fixture.catalog->loaded("long")) == fixture.batches * samples_per_batch);
}

TEST_CASE("requests for a missing session are answered") {
    ScratchDirectory data;
    const auto catalog = Catalog::open(data.path(), {}).value();
    symbol::Symbolizer symbolizer{symbol::Config{}};
    Symbolization symbolization(symbolizer, [](const auto&) {});
    SessionLoader loader(*catalog, symbolization, [](const auto&) { FAIL("nothing can be shown"); });
    std::promise<void> something, whole;
    loader.load("none", SessionLoader::Extent::partial, [&] { something.set_value(); });
    loader.load("none", SessionLoader::Extent::complete, [&] { whole.set_value(); });
    something.get_future().get();
    whole.get_future().get();
    CHECK(catalog->opened("none") == nullptr);
}

TEST_CASE("a failing job of the symbol thread ends only itself") {
    ScratchDirectory data;
    const auto catalog = Catalog::open(data.path(), {}).value();
    RecordingScene scene;
    auto writer = wire::SessionWriter::create(data / "sessions/one.flw").value();
    const wire::Frame frame = scene.next();
    writer.append(arrival, frame.flag, frame.payload).value();
    symbol::Symbolizer symbolizer{symbol::Config{}};
    std::atomic<bool> fails{true};
    Symbolization symbolization(symbolizer, [&](const auto&) {
        if (fails) throw std::runtime_error("no memory");
    });
    std::promise<std::string> failure;
    symbolization.post([] { throw std::runtime_error("no memory"); },
                       [&](const std::string& why) { failure.set_value(why); });
    CHECK(failure.get_future().get() == "no memory");
    // Requests for a session are answered all the same.
    SessionLoader loader(*catalog, symbolization, [](const auto&) {});
    std::promise<void> whole;
    loader.load("one", SessionLoader::Extent::complete, [&] { whole.set_value(); });
    whole.get_future().get();
    const auto session = catalog->get("one").value();
    const auto notices = [&] {
        std::promise<void> done;  // jobs run in order
        symbolization.schedule(session);
        symbolization.post([&] { done.set_value(); });
        done.get_future().get();
        const auto all = session->info().notices;
        return std::ranges::count(all, "symbols-failed", &wire::Notice::code);
    };
    symbolizer.set_config({});  // its addresses are requested again
    CHECK(notices() == 1);
    fails = false;
    symbolizer.set_config({});
    CHECK(notices() == 0);
}
