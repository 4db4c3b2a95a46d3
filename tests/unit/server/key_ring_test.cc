#include "server/link/key_ring.h"

#include <catch2/catch.hpp>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "base/fd.h"
#include "recording.h"

using namespace flamewire;
using namespace flamewire::server;
using flamewire::test::ScratchDirectory;

namespace {

constexpr std::int64_t now = 1'790'000'000'000'000'000;
constexpr std::int64_t minute = 60'000'000'000;

}  // namespace

TEST_CASE("a key that replaces another one continues its recordings") {
    const ScratchDirectory data;
    const std::string path = data.path() + "/pairing-keys";
    KeyRing ring = KeyRing::open(path).value();
    const secure::PairingKey first = ring.make().value(), second = ring.renew(first.id).value();
    CHECK(ring.owner_of(first.id) == first.id);
    CHECK(ring.owner_of(second.id) == first.id);
    CHECK(ring.unused().value() != second);  // it belongs to that agent, not to the next one
    // Both keys work until the new one is used.
    CHECK(ring.find(first.id));
    ring.used(second.id, "192.0.2.7", now);
    CHECK_FALSE(ring.find(first.id));
    CHECK(ring.find(second.id) == second);
    // Another renewal, by another reader of the file: the key still belongs to the first one.
    const secure::PairingKey third = KeyRing::open(path).value().renew(second.id).value();
    REQUIRE(ring.refresh().value());
    ring.used(third.id, "192.0.2.7", now + 1);
    CHECK(KeyRing::open(path).value().owner_of(third.id) == first.id);
    CHECK_FALSE(ring.has(second.id));
    CHECK(ring.renew("0123456789abcdef").error().code == ErrorCode::not_found);
    // The key of a listening agent is identified by the address.
    const secure::PairingKey board = secure::make_pairing_key().value(), next = secure::make_pairing_key().value();
    REQUIRE(ring.put("board:9999", board));
    CHECK(ring.renew(board.id).error().message.find("--pair-agent board:9999") != std::string::npos);
    REQUIRE(ring.put("board:9999", next));
    CHECK(ring.owner_of(next.id) == board.id);
    CHECK_FALSE(ring.has(board.id));
}

TEST_CASE("keys are stored for their owner only, and read again") {
    const ScratchDirectory data;
    const std::string path = data.path() + "/pairing-keys";
    KeyRing ring = KeyRing::open(path).value();
    CHECK(ring.all().empty());
    const secure::PairingKey first = ring.unused().value();
    CHECK(ring.unused().value() == first);
    CHECK(ring.find(first.id) == first);
    struct stat about{};
    REQUIRE(::stat(path.c_str(), &about) == 0);
    CHECK((about.st_mode & 0777) == 0600);

    // The agent that used it is recorded, and the next agent gets another key.
    ring.used(first.id, "192.0.2.7", now);
    const secure::PairingKey second = ring.unused().value();
    CHECK(second.id != first.id);
    CHECK(second.secret != first.secret);
    const secure::PairingKey board = secure::make_pairing_key().value();
    REQUIRE(ring.put("board:9999", board));

    KeyRing again = KeyRing::open(path).value();
    CHECK(again.all() == ring.all());
    REQUIRE(again.all().size() == 3);
    CHECK(again.find(first.id) == first);
    CHECK(again.of_address("board:9999") == board);
    CHECK_FALSE(again.of_address("board:1"));
    CHECK_FALSE(again.of_address(""));
    CHECK_FALSE(again.find(board.id));  // only for dialing
    CHECK(again.has(board.id));
    const auto keys = again.all();
    const auto used = std::ranges::find(keys, first.id, &KnownKey::id);
    REQUIRE(used != keys.end());
    CHECK(used->used_ns == now);
    CHECK(used->used_from == "192.0.2.7");
}

TEST_CASE("a pairing code belongs to one agent from the moment when it connects") {
    const ScratchDirectory data;
    KeyRing ring = KeyRing::open(data.path() + "/pairing-keys").value();
    const secure::PairingKey first = ring.unused().value();
    ring.reserve(first.id);
    ring.reserve("0123456789abcdef");  // not a key of this server
    CHECK(ring.unused().value() != first);
    CHECK(ring.find(first.id) == first);
}

TEST_CASE("a server's own code is not accepted as a listening agent's") {
    const ScratchDirectory data;
    KeyRing ring = KeyRing::open(data.path() + "/pairing-keys").value();
    const secure::PairingKey given = ring.make().value();
    const auto kept = ring.put("board:9999", given);
    REQUIRE_FALSE(kept);
    CHECK(kept.error().code == ErrorCode::invalid);
    CHECK(ring.find(given.id) == given);
    CHECK_FALSE(ring.of_address("board:9999"));
}

TEST_CASE("a key is found while another program has the file locked") {
    const ScratchDirectory data;
    const std::string path = data.path() + "/pairing-keys";
    KeyRing ring = KeyRing::open(path).value();
    const secure::PairingKey key = ring.make().value();
    UniqueFd gate(::open((path + ".lock").c_str(), O_RDWR));
    REQUIRE(::flock(gate.get(), LOCK_EX) == 0);
    bool made = false;
    std::thread waiting([&] { made = ring.make().has_value(); });
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    CHECK(ring.find(key.id) == key);
    CHECK(ring.all().size() == 1);
    ring.reserve(key.id);
    CHECK_FALSE(ring.refresh().value());
    gate.reset();
    waiting.join();
    CHECK(made);
    CHECK(ring.all().size() == 2);
}

TEST_CASE("two programs change the same keys") {
    const ScratchDirectory data;
    const std::string path = data.path() + "/pairing-keys";
    KeyRing server = KeyRing::open(path).value(), tool = KeyRing::open(path).value();
    const secure::PairingKey mine = server.make().value();
    const secure::PairingKey theirs = tool.make().value();  // it reads the file before it writes
    CHECK(server.refresh().value());
    CHECK_FALSE(server.refresh().value());
    CHECK(server.find(theirs.id) == theirs);
    CHECK(tool.find(mine.id) == mine);
    CHECK(tool.withdraw(mine.id).value());
    CHECK_FALSE(tool.withdraw(mine.id).value());
    CHECK(server.has(mine.id));
    CHECK(server.refresh().value());
    CHECK_FALSE(server.has(mine.id));

    std::atomic<int> made = 0;
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i)
        threads.emplace_back([&] {
            KeyRing own = KeyRing::open(path).value();
            for (int n = 0; n < 5; ++n) made += own.make() ? 1 : 0;
        });
    for (std::thread& thread : threads) thread.join();
    CHECK(made == 20);
    REQUIRE(server.refresh());
    CHECK(server.all().size() == 21);
}

TEST_CASE("a use is written at most once per minute, or if it comes from another address") {
    const ScratchDirectory data;
    const std::string path = data.path() + "/pairing-keys";
    KeyRing ring = KeyRing::open(path).value(), reader = KeyRing::open(path).value();
    const std::string id = ring.make().value().id;
    const auto written = [&](const std::string& from, std::int64_t at) {
        (void)reader.refresh();
        ring.used(id, from, at);
        return reader.refresh().value();
    };
    CHECK(written("a", now));
    CHECK_FALSE(written("a", now + minute - 1));
    CHECK(written("b", now + minute - 1));
    CHECK(written("b", now + 3 * minute));
    CHECK_FALSE(written("b", now + 3 * minute));
}

TEST_CASE("an invalid file leaves the keys unchanged") {
    const ScratchDirectory data;
    const std::string path = data.path() + "/pairing-keys";
    KeyRing ring = KeyRing::open(path).value();
    const std::string id = ring.make().value().id;
    for (const std::string text :
         {"no JSON\n", "[]\n", "{}\n", R"({"id":"0123456789abcdef"})", R"({"id":"0123456789abcdef","secret":"00"})",
          R"({"id":"0123456789abcde","secret":"00112233445566778899aabbccddeeff"})"}) {
        REQUIRE(replace_file(path, as_bytes_view(text)));
        const auto read = ring.refresh();
        REQUIRE_FALSE(read);
        CHECK(read.error().code == ErrorCode::invalid);
        CHECK(read.error().message.find(path + " line 1") == 0);
        CHECK(ring.has(id));
        CHECK_FALSE(KeyRing::open(path));
        // An unreadable file is not overwritten.
        CHECK_FALSE(ring.make());
    }
    REQUIRE(replace_file(path, as_bytes_view("\n"), Durable::no, 0644));
    REQUIRE_FALSE(ring.refresh());
    CHECK(ring.refresh().error().code == ErrorCode::permission);
    REQUIRE(::chmod(path.c_str(), 0600) == 0);
    CHECK(ring.refresh().value());
    CHECK_FALSE(ring.has(id));
}

TEST_CASE("keys have a bound") {
    const ScratchDirectory data;
    const std::string path = data.path() + "/pairing-keys";
    std::string text;
    for (std::size_t i = 0; i < KeyRing::max_keys; ++i) {
        char line[100];
        (void)std::snprintf(line, sizeof(line),
                            R"({"id":"%016zx","secret":"%032zx","used_ns":1})"
                            "\n",
                            i, i);
        text += line;
    }
    REQUIRE(replace_file(path, as_bytes_view(text)));
    KeyRing ring = KeyRing::open(path).value();
    for (const auto& made : {ring.make(), ring.unused()}) {
        REQUIRE_FALSE(made);
        CHECK(made.error().code == ErrorCode::busy);
        CHECK(made.error().message == "there are 4096 pairing keys: withdraw one first");
    }
    CHECK(ring.withdraw("0000000000000000").value());
    CHECK(ring.unused());
}
