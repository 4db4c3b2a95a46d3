// TLS 1.2 with a pre-shared key over bytes that somebody else carries: no socket, no thread, no clock. Mutual, and with
// forward secrecy (ECDHE_PSK over X25519, ChaCha20-Poly1305; RFC 5489, RFC 7905). Whoever dialled is the client.
//
// Errors are sentences for people. After one the channel is over; what outgoing() still has (an alert) may be sent, so
// that the other end knows too.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/result.h"
#include "secure/pairing_key.h"

namespace flamewire::secure {

// The first byte of a TLS connection (a handshake record); no frame of the plain protocol begins with it.
inline constexpr std::byte first_tls_byte{0x16};

// "mbed TLS 2.28.3".
const char* tls_library();

class Channel {
public:
    // The key of an id, if there is one.
    using FindKey = std::function<std::optional<PairingKey>(std::string_view id)>;

    // The end that dialled; outgoing() has its first bytes at once. `key` is copied.
    static Result<std::unique_ptr<Channel>> client(const PairingKey& key);
    // An id that is not known fails as a wrong key does, after as much work.
    static Result<std::unique_ptr<Channel>> server(FindKey find);
    virtual ~Channel() = default;

    // Bytes from the other end; what they carry is appended to `plain`. permission: the keys are not the same. closed:
    // the other end has ended the channel. invalid: it speaks something else, or somebody changed what it said.
    virtual Result<bool> receive(Bytes bytes, std::string& plain) = 0;
    // Before the channel is established this waits for it.
    virtual Result<bool> send(std::string_view plain) = 0;
    // Says that nothing follows.
    virtual void close() = 0;

    // For the other end; the caller takes them away.
    virtual std::string& outgoing() = 0;
    [[nodiscard]] virtual bool established() const = 0;
    // Of the key that both ends have; empty before it is known.
    [[nodiscard]] virtual const std::string& key_id() const = 0;
};

}  // namespace flamewire::secure
