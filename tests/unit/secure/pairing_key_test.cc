#include "secure/pairing_key.h"

#include <catch2/catch.hpp>
#include <sys/stat.h>
#include <unistd.h>

#include <set>

#include "base/file.h"
#include "base/hex.h"

using namespace flamewire;
using namespace flamewire::secure;

TEST_CASE("keys are random, and a pairing code contains the whole key") {
    std::set<std::string> seen;
    for (int i = 0; i < 100; ++i) {
        const auto key = make_pairing_key();
        REQUIRE(key);
        CHECK(key->id.size() == 16);
        CHECK(key->secret.size() == 16);
        CHECK(seen.insert(key->id).second);
        CHECK(seen.insert(key->secret).second);
        CHECK(parse_pairing_code(pairing_code(*key)) == *key);
    }
    const auto key = parse_pairing_code(" 0123456789ABCDEF-00112233445566778899aabbccddeeff\n");
    REQUIRE(key);
    CHECK(key->id == "0123456789abcdef");
    CHECK(to_hex(key->secret) == "00112233445566778899aabbccddeeff");
}

TEST_CASE("invalid pairing codes are refused, and the error does not repeat them") {
    for (const std::string code :
         {"", " ", "-", "0123456789abcdef", "0123456789abcdef-00112233445566778899aabbccddeef",
          "0123456789abcdef-00112233445566778899aabbccddeeff0", "0123456789abcdeg-00112233445566778899aabbccddeeff",
          "0123456789abcdef-0011223344556677-899aabbccddeeff", "0123456789abcde-000112233445566778899aabbccddeeff"}) {
        const auto key = parse_pairing_code(code);
        REQUIRE_FALSE(key);
        CHECK(key.error().code == ErrorCode::invalid);
        CHECK((code.size() < 3 || key.error().message.find("0011") == std::string::npos));
    }
}

TEST_CASE("a file with a pairing code must be readable only for its owner") {
    const std::string path = "/tmp/flamewire-pairing-" + std::to_string(::getpid());
    REQUIRE(replace_file(path, as_bytes_view("0123456789abcdef-00112233445566778899aabbccddeeff\n")));
    REQUIRE(::chmod(path.c_str(), 0640) == 0);
    auto key = read_pairing_file(path);
    REQUIRE_FALSE(key);
    CHECK(key.error().code == ErrorCode::permission);
    CHECK(key.error().message == path + " can be read by other users, who could pair themselves: chmod 600 " + path);
    REQUIRE(::chmod(path.c_str(), 0400) == 0);
    key = read_pairing_file(path);
    REQUIRE(key);
    CHECK(key->id == "0123456789abcdef");
    REQUIRE(::unlink(path.c_str()) == 0);
    key = read_pairing_file(path);
    REQUIRE_FALSE(key);
    CHECK(key.error().code == ErrorCode::not_found);
}
