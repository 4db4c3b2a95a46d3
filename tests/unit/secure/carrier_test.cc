#include "secure/carrier.h"

#include <catch2/catch.hpp>

using namespace flamewire;
using namespace flamewire::secure;
using Kind = Carrier::Kind;

namespace {

// Transfers everything from `from` to `to`, and returns the decoded bytes.
std::string over(Carrier& from, Carrier& to) {
    const std::string bytes = from.take_outgoing();
    const auto plain = to.receive(as_bytes_view(bytes));
    REQUIRE(plain);
    return std::string(as_text(*plain));
}

}  // namespace

TEST_CASE("the first byte determines the kind of a connection") {
    const PairingKey key = *make_pairing_key();
    const auto find = [key](std::string_view id) { return id == key.id ? std::optional(key) : std::nullopt; };

    Carrier open = Carrier::accepted(find, Carrier::Plain::allowed);
    CHECK(open.kind() == Kind::undecided);
    CHECK(open.carry("hello").value().empty());
    const std::string frame("\0\0\0\1\2x", 6);
    const auto plain = open.receive(as_bytes_view(frame));
    REQUIRE(plain);
    CHECK(as_text(*plain) == frame);
    CHECK(open.kind() == Kind::plain);
    CHECK(open.key_id().empty());
    CHECK(open.take_outgoing() == "hello");
    CHECK(open.carry("more").value() == "more");

    Carrier server = Carrier::accepted(find, Carrier::Plain::refused);
    CHECK(server.carry("hello").value().empty());
    Carrier client = *Carrier::dialled(key);
    std::string at_client, at_server;
    CHECK(client.carry("early").value().substr(0, 1) == "\x16");
    client = *Carrier::dialled(key);
    for (int turn = 0; turn < 4; ++turn) {
        at_server += over(client, server);
        at_client += over(server, client);
    }
    CHECK(server.kind() == Kind::encrypted);
    CHECK(server.key_id() == key.id);
    CHECK(at_client == "hello");
    const std::string sealed = client.carry("frame").value();
    CHECK(sealed.find("frame") == std::string::npos);
    CHECK(as_text(server.receive(as_bytes_view(sealed)).value()) == "frame");
    CHECK(at_server.empty());
}

TEST_CASE("if the other end stays silent, the connection continues in clear text") {
    Carrier carrier = Carrier::accepted([](std::string_view) { return std::nullopt; }, Carrier::Plain::allowed);
    CHECK(carrier.carry("hello").value().empty());
    CHECK(carrier.take_outgoing().empty());
    CHECK(carrier.settle_plain());
    CHECK(carrier.take_outgoing() == "hello");
}

TEST_CASE("if clear text is refused, none is ever sent") {
    const auto no_key = [](std::string_view) { return std::nullopt; };
    Carrier with_input = Carrier::accepted(no_key, Carrier::Plain::refused);
    CHECK(with_input.carry("a secret hello").value().empty());
    const std::string frame("\0\0\0\1\2x", 6);
    const auto plain = with_input.receive(as_bytes_view(frame));
    REQUIRE_FALSE(plain);
    CHECK(plain.error().code == ErrorCode::unsupported);
    Carrier silent = Carrier::accepted(no_key, Carrier::Plain::refused);
    CHECK(silent.carry("a secret hello").value().empty());
    CHECK_FALSE(silent.settle_plain());
    for (Carrier* carrier : {&with_input, &silent}) {
        CHECK(carrier->kind() == Kind::refused);
        CHECK(carrier->take_outgoing().empty());
        CHECK(carrier->carry("more").value().empty());
        CHECK_FALSE(carrier->receive(as_bytes_view(frame)));
        carrier->end();
        CHECK(carrier->take_outgoing().empty());
    }
}
