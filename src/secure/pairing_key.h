// What makes an agent and a server know each other: 128 random bits, and an id that names them on the wire and tells
// nothing. People carry both as one code from the side that made it to the other.
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

// io: the kernel gives no random numbers.
Result<PairingKey> make_pairing_key();

// "0123456789abcdef-00112233445566778899aabbccddeeff": id and secret in hex.
std::string pairing_code(const PairingKey& key);
// Spaces around it and capitals do not matter. invalid: what is wrong, without a digit of the code.
Result<PairingKey> parse_pairing_code(std::string_view code);

// Reads a code from a file that holds nothing else. not_found and the like, with the path; permission when others than
// its owner can read it.
Result<PairingKey> read_pairing_file(const std::string& path);

}  // namespace flamewire::secure
