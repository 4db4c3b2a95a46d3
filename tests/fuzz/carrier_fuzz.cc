// Arbitrary bytes from the peer of a link before and during the handshake, for both ends, in pieces.
#include "secure/carrier.h"

using namespace flamewire;
using namespace flamewire::secure;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size < 2) return 0;
    static const PairingKey key = {"0123456789abcdef", std::string(PairingKey::secret_bytes, 'k')};
    const auto find = [](std::string_view id) { return id == key.id ? std::optional(key) : std::nullopt; };
    Carrier carrier = (data[0] & 1) != 0   ? *Carrier::dialled(key)
                      : (data[0] & 2) != 0 ? Carrier::accepted(find, Carrier::Plain::allowed)
                                           : Carrier::accepted(find, Carrier::Plain::refused);
    if (carrier.carry("hello").value_or("").find("hello") != std::string::npos) __builtin_trap();
    const bool encrypted_only = (data[0] & 3) != 2;
    const std::size_t most = std::size_t{data[1]} + 1;
    for (std::size_t at = 2; at < size; at += most) {
        const auto plain = carrier.receive(std::as_bytes(std::span(data + at, std::min(most, size - at))));
        const std::string answer = carrier.take_outgoing();
        // The input cannot contain the key, so it must not decrypt to anything, and nothing may be sent unencrypted.
        if (encrypted_only && plain && !plain->empty()) __builtin_trap();
        if (encrypted_only && answer.find("hello") != std::string::npos) __builtin_trap();
        if (!plain) break;
    }
    carrier.end();
    return 0;
}
