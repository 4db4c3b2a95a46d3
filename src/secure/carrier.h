// Carries the bytes of one connection, either encrypted or as they are. The connecting end chooses. The accepting end
// detects the choice from the first byte, so both variants share a port. No socket: the caller moves the bytes.
#pragma once

#include <memory>
#include <string>

#include "secure/channel.h"

namespace flamewire::secure {

class Carrier {
public:
    enum class Kind : std::uint8_t { undecided, plain, encrypted, refused };
    enum class Plain : std::uint8_t { allowed, refused };

    // No encryption.
    static Carrier plain() { return Carrier(Kind::plain); }
    // For the end that connects with `key`.
    static Result<Carrier> dialled(const PairingKey& key);
    // For the end that accepts: the peer's first byte decides. If the peer does not use encryption although it must,
    // the carrier refuses the connection and carries nothing more in either direction.
    static Carrier accepted(Channel::FindKey find, Plain plain);

    // Returns the payload of bytes from the peer; valid until the next call. Errors as for Channel::receive, and
    // unsupported: the peer does not use encryption although it must.
    Result<Bytes> receive(Bytes bytes);
    // Returns what to write for these bytes. Empty until the peer's first byte has arrived and the handshake is
    // complete: take_outgoing() returns the data then.
    Result<std::string> carry(std::string bytes);
    // Returns what else must be written. Call it after receive().
    std::string take_outgoing();
    // Call this if the peer sent nothing in time, so it does not use TLS. False: the connection is refused.
    bool settle_plain();
    // Ends the stream. take_outgoing() then returns the closing message.
    void end();

    [[nodiscard]] Kind kind() const { return kind_; }
    // The id of the key; empty if the connection is not encrypted, or not yet.
    [[nodiscard]] std::string key_id() const { return channel_ ? channel_->key_id() : std::string(); }
    // As for Channel.
    [[nodiscard]] bool key_exchange_begun() const { return channel_ && channel_->key_exchange_begun(); }

private:
    explicit Carrier(Kind kind) : kind_(kind) {}

    Kind kind_;
    Plain plain_ = Plain::refused;
    Channel::FindKey find_;
    std::unique_ptr<Channel> channel_;
    std::string waiting_;   // to be carried once kind_ is decided
    std::string received_;  // decrypted bytes of an encrypted connection
};

}  // namespace flamewire::secure
