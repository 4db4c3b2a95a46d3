// Authenticates an agent and a server to each other: 128 random bits, and an id that names them on the wire and reveals
// nothing. People copy both as one code from the side that created it to the other.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace flamewire::secure {

struct PairingKey {
    static constexpr std::size_t id_bytes = 8, secret_bytes = 16;
    std::string id;      // 16 lowercase hex digits; not secret
    std::string secret;  // 16 bytes

    bool operator==(const PairingKey&) const = default;
};

// io: the kernel returned no random numbers.
Result<PairingKey> make_pairing_key();

// "0123456789abcdef-00112233445566778899aabbccddeeff": id and secret in hex.
std::string pairing_code(const PairingKey& key);
// Ignores surrounding whitespace and case. invalid: the message states the error, without any digit of the code.
Result<PairingKey> parse_pairing_code(std::string_view code);

// Reads a code from a file that contains nothing else. Errors such as not_found name the path; permission if users
// other than the owner can access the file.
Result<PairingKey> read_pairing_file(const std::string& path);

}  // namespace flamewire::secure
