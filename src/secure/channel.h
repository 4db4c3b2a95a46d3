// TLS 1.2 with a pre-shared key. The caller transports the bytes: no socket, no thread, no clock. Authentication is
// mutual, with forward secrecy (ECDHE_PSK over X25519, ChaCha20-Poly1305; RFC 5489, RFC 7905). The end that connects is
// the client.
//
// Error messages are sentences for people. After an error the channel is unusable. Send what outgoing() still holds (an
// alert), so that the peer learns of the error too.
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

// The first byte of a TLS connection (a handshake record). No frame of the plain protocol begins with it.
inline constexpr std::byte first_tls_byte{0x16};

// "mbed TLS 2.28.3".
const char* tls_library();

class Channel {
public:
    // Returns the key with this id, if there is one.
    using FindKey = std::function<std::optional<PairingKey>(std::string_view id)>;

    // The end that connects; outgoing() holds its first bytes at once. `key` is copied.
    static Result<std::unique_ptr<Channel>> client(const PairingKey& key);
    // An unknown id fails as a wrong key does, after the same amount of work.
    static Result<std::unique_ptr<Channel>> server(FindKey find);
    virtual ~Channel() = default;

    // Processes bytes from the peer and appends their payload to `plain`. permission: the keys differ. closed: the peer
    // ended the channel. invalid: the peer uses another protocol, or the data was changed on the way.
    virtual Result<bool> receive(Bytes bytes, std::string& plain) = 0;
    // Queues `plain` until the channel is established.
    virtual Result<bool> send(std::string_view plain) = 0;
    // Sends a close notification, if the channel is established.
    virtual void close() = 0;

    // Bytes for the peer; the caller removes what it sends.
    virtual std::string& outgoing() = 0;
    [[nodiscard]] virtual bool established() const = 0;
    // The accepting end has begun public-key work, so this handshake was not free. Broken first bytes are.
    [[nodiscard]] virtual bool key_exchange_begun() const = 0;
    // Id of the key that both ends have; empty until the channel is established.
    [[nodiscard]] virtual const std::string& key_id() const = 0;
};

}  // namespace flamewire::secure
