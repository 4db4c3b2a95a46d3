// How the bytes of one connection are carried: encrypted, or as they are. The end that dials says which; the end that
// is dialled sees it by the first byte, so both ways share a port. No socket: bytes go in and come out.
#pragma once

#include <memory>
#include <string>

#include "secure/channel.h"

namespace flamewire::secure {

class Carrier {
public:
    enum class Kind : std::uint8_t { undecided, plain, encrypted, refused };
    enum class Plain : std::uint8_t { allowed, refused };

    // As they are.
    static Carrier plain() { return Carrier(Kind::plain); }
    // Of the end that dialled, by its key.
    static Result<Carrier> dialled(const PairingKey& key);
    // Of the end that is dialled: the other's first byte decides. Where that says that it speaks as it is, and may not,
    // nothing is carried any more, in either direction.
    static Carrier accepted(Channel::FindKey find, Plain plain);

    // What bytes from the other end carry; valid until the next call. Errors as Channel::receive; unsupported: it speaks
    // without encryption, and may not.
    Result<Bytes> receive(Bytes bytes);
    // What to write for these bytes; empty while the other end has not said how it speaks, or shakes hands: it comes by
    // take_outgoing() then.
    Result<std::string> carry(std::string bytes);
    // What else is to be written: look after receive().
    std::string take_outgoing();
    // Nobody said anything in time, so it is no TLS. False: then it is refused.
    bool settle_plain();
    // Says that nothing follows; the farewell is in take_outgoing().
    void end();

    [[nodiscard]] Kind kind() const { return kind_; }
    // By which key; empty when it is not encrypted, or not yet.
    [[nodiscard]] std::string key_id() const { return channel_ ? channel_->key_id() : std::string(); }

private:
    explicit Carrier(Kind kind) : kind_(kind) {}

    Kind kind_;
    Plain plain_ = Plain::refused;
    Channel::FindKey find_;
    std::unique_ptr<Channel> channel_;
    std::string waiting_;   // to be carried once it is decided
    std::string received_;  // that an encrypted connection carried
};

}  // namespace flamewire::secure
