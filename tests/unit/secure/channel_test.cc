// Both ends of a channel, with the bytes between them split in every way. tests/oracle uses another TLS implementation.
#include "secure/channel.h"

#include <catch2/catch.hpp>

#include <random>

using namespace flamewire;
using namespace flamewire::secure;

namespace {

struct Ends {
    PairingKey key = *make_pairing_key();
    std::unique_ptr<Channel> client, server;
    std::string at_client, at_server;  // plain
    std::string to_client, to_server;  // everything that was ever sent
    std::optional<Error> client_error, server_error;
    std::string requested_id;

    explicit Ends(const PairingKey& servers) {
        client = *Channel::client(key);
        server = *Channel::server([this, servers](std::string_view id) -> std::optional<PairingKey> {
            requested_id = id;
            return id == servers.id ? std::optional(servers) : std::nullopt;
        });
    }
    Ends() : Ends(*make_pairing_key()) {
        server = *Channel::server([this](std::string_view id) -> std::optional<PairingKey> {
            requested_id = id;
            return id == key.id ? std::optional(key) : std::nullopt;
        });
    }

    // Transfers everything in pieces of at most `most` bytes until both ends are silent.
    void carry(std::size_t most = SIZE_MAX) {
        const auto over = [most](std::string& from, Channel& to, std::string& plain, std::string& all,
                                 std::optional<Error>& error) {
            const std::string bytes = std::exchange(from, {});
            all += bytes;
            for (std::size_t at = 0; at < bytes.size() && !error; at += std::min(most, bytes.size() - at))
                if (const auto taken = to.receive(as_bytes_view(std::string_view(bytes).substr(at, most)), plain);
                    !taken)
                    error = taken.error();
        };
        while (!client->outgoing().empty() || !server->outgoing().empty()) {
            over(client->outgoing(), *server, at_server, to_server, server_error);
            over(server->outgoing(), *client, at_client, to_client, client_error);
        }
    }
};

std::string text(std::size_t size, unsigned seed) {
    std::mt19937 random(seed);
    std::string made(size, ' ');
    for (char& c : made) c = static_cast<char>(random());
    return made;
}

}  // namespace

TEST_CASE("a channel carries bytes in both directions, however they are split") {
    const std::size_t most = GENERATE(1, 2, 5, 100, 16384, 1 << 20);
    Ends ends;
    CHECK(static_cast<std::byte>(ends.client->outgoing()[0]) == first_tls_byte);
    REQUIRE(ends.client->send("said before anybody answered") == true);
    ends.carry(most);
    REQUIRE_FALSE(ends.client_error);
    REQUIRE_FALSE(ends.server_error);
    CHECK(ends.client->established());
    CHECK(ends.server->established());
    CHECK(ends.client->key_id() == ends.key.id);
    CHECK(ends.server->key_id() == ends.key.id);
    CHECK(ends.at_server == "said before anybody answered");
    const std::string large = text(100'000, 1), small = text(10, 2);
    REQUIRE(ends.server->send(large));
    REQUIRE(ends.server->send(""));
    REQUIRE(ends.server->send(small));
    REQUIRE(ends.client->send(large));
    ends.carry(most);
    CHECK(ends.at_client == large + small);
    CHECK(ends.at_server == "said before anybody answered" + large);
    // Neither text nor keys are sent unencrypted.
    for (const std::string& seen : {ends.to_server, ends.to_client}) {
        CHECK(seen.find("nobody") == std::string::npos);
        CHECK(seen.find("anybody") == std::string::npos);
        CHECK(seen.find(ends.key.secret) == std::string::npos);
        CHECK(seen.find(small) == std::string::npos);
    }
    ends.client->close();
    ends.carry(most);
    REQUIRE(ends.server_error);
    CHECK(ends.server_error->code == ErrorCode::closed);
}

TEST_CASE("a wrong key and an unknown id end the same way, at both ends") {
    PairingKey other = *make_pairing_key();
    Ends unknown(other);
    Ends probe(other);
    PairingKey same_id = other;
    same_id.id = probe.key.id;
    probe.server = *Channel::server(
        [same_id](std::string_view id) { return id == same_id.id ? std::optional(same_id) : std::nullopt; });
    for (Ends* ends : {&unknown, &probe}) {
        REQUIRE(ends->client->send("a secret thing"));
        ends->carry();
        REQUIRE(ends->server_error);
        REQUIRE(ends->client_error);
        CHECK(ends->server_error->code == ErrorCode::permission);
        CHECK(ends->client_error->code == ErrorCode::permission);
        CHECK(ends->server_error->message == ends->client_error->message);
        CHECK_FALSE(ends->client->established());
        CHECK_FALSE(ends->server->established());
        CHECK(ends->at_server.empty());
        CHECK(ends->server->key_id().empty());
    }
    CHECK(unknown.to_client.size() == probe.to_client.size());
}

TEST_CASE("only an answered handshake costs public-key work") {
    std::string plain;
    Ends junk;
    CHECK_FALSE(junk.server->receive(as_bytes_view(std::string("\x16\x03\x01\0\4junk", 9)), plain));
    CHECK_FALSE(junk.server->key_exchange_begun());
    Ends cut;
    cut.client->outgoing().pop_back();
    cut.carry();
    CHECK_FALSE(cut.server->key_exchange_begun());
    Ends wrong(*make_pairing_key());
    wrong.carry();
    CHECK(wrong.server->key_exchange_begun());
}

TEST_CASE("a changed byte is detected") {
    Ends ends;
    ends.carry();
    REQUIRE(ends.client->send("0123456789"));
    std::string record = std::exchange(ends.client->outgoing(), {});
    record[record.size() / 2] = static_cast<char>(record[record.size() / 2] ^ 1);
    std::string plain;
    const auto taken = ends.server->receive(as_bytes_view(record), plain);
    REQUIRE_FALSE(taken);
    CHECK(taken.error().code == ErrorCode::invalid);
    CHECK(taken.error().message == "what it sent was changed on the way");
    CHECK(plain.empty());
}

TEST_CASE("a repeated record is refused") {
    Ends ends;
    ends.carry();
    REQUIRE(ends.client->send("once"));
    const std::string record = std::exchange(ends.client->outgoing(), {});
    std::string plain;
    REQUIRE(ends.server->receive(as_bytes_view(record), plain));
    CHECK(plain == "once");
    CHECK_FALSE(ends.server->receive(as_bytes_view(record), plain));
    CHECK(plain == "once");
}

TEST_CASE("bytes that are not TLS end the channel with a message") {
    for (const std::string& bytes : {std::string("\x05\0\0\0\0", 5), std::string("GET / HTTP/1.1\r\n\r\n"),
                                     text(1000, 3), std::string("\x16\x03\x01\xff\xff", 5) + text(70'000, 4)}) {
        auto server = *Channel::server([](std::string_view) { return std::nullopt; });
        std::string plain;
        const auto taken = server->receive(as_bytes_view(bytes), plain);
        REQUIRE_FALSE(taken);
        CHECK(taken.error().code == ErrorCode::invalid);
        CHECK(plain.empty());
    }
}
