#include "secure/carrier.h"

#include <catch2/catch.hpp>

using namespace flamewire;
using namespace flamewire::secure;
using Kind = Carrier::Kind;

namespace {

// All that `from` has for `to`; what `to` understands of it.
std::string over(Carrier& from, Carrier& to) {
    const std::string bytes = from.take_outgoing();
    const auto plain = to.receive(as_bytes_view(bytes));
    REQUIRE(plain);
    return std::string(as_text(*plain));
}

}  // namespace

TEST_CASE("the first byte says how a connection speaks") {
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
    std::string heard, understood;
    CHECK(client.carry("early").value().substr(0, 1) == "\x16");
    client = *Carrier::dialled(key);
    for (int turn = 0; turn < 4; ++turn) {
        understood += over(client, server);
        heard += over(server, client);
    }
    CHECK(server.kind() == Kind::encrypted);
    CHECK(server.key_id() == key.id);
    CHECK(heard == "hello");
    const std::string sealed = client.carry("frame").value();
    CHECK(sealed.find("frame") == std::string::npos);
    CHECK(as_text(server.receive(as_bytes_view(sealed)).value()) == "frame");
    CHECK(understood.empty());
}

TEST_CASE("who hears nothing goes on in clear") {
    Carrier carrier = Carrier::accepted([](std::string_view) { return std::nullopt; }, Carrier::Plain::allowed);
    CHECK(carrier.carry("hello").value().empty());
    CHECK(carrier.take_outgoing().empty());
    CHECK(carrier.settle_plain());
    CHECK(carrier.take_outgoing() == "hello");
}

TEST_CASE("where clear text is refused none ever leaves") {
    const auto nobody = [](std::string_view) { return std::nullopt; };
    Carrier spoken_to = Carrier::accepted(nobody, Carrier::Plain::refused);
    CHECK(spoken_to.carry("a secret hello").value().empty());
    const std::string frame("\0\0\0\1\2x", 6);
    const auto plain = spoken_to.receive(as_bytes_view(frame));
    REQUIRE_FALSE(plain);
    CHECK(plain.error().code == ErrorCode::unsupported);
    Carrier silent = Carrier::accepted(nobody, Carrier::Plain::refused);
    CHECK(silent.carry("a secret hello").value().empty());
    CHECK_FALSE(silent.settle_plain());
    for (Carrier* carrier : {&spoken_to, &silent}) {
        CHECK(carrier->kind() == Kind::refused);
        CHECK(carrier->take_outgoing().empty());
        CHECK(carrier->carry("more").value().empty());
        CHECK_FALSE(carrier->receive(as_bytes_view(frame)));
        carrier->end();
        CHECK(carrier->take_outgoing().empty());
    }
}
