#include "secure/host.h"

#include <catch2/catch.hpp>

using flamewire::secure::host_of;

TEST_CASE("a host is an IPv4 address or the first half of an IPv6 address") {
    const auto of = [](const char* address) { return host_of(asio::ip::make_address(address)); };
    CHECK(of("192.0.2.1") == "192.0.2.1");
    CHECK(of("::ffff:192.0.2.1") == "192.0.2.1");
    CHECK(of("2001:db8:1:2:3:4:5:6") == of("2001:db8:1:2::1"));
    CHECK(of("2001:db8:1:2::1") == "2001:db8:1:2::/64");
    CHECK(of("2001:db8:1:3::1") != of("2001:db8:1:2::1"));
    CHECK(of("fe80::1%1") == of("fe80::2"));
    CHECK(of("::1") == "::1");
}
