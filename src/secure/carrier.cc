#include "secure/carrier.h"

#include <utility>

namespace flamewire::secure {
namespace {

// Buffer capacity that is kept for later calls.
constexpr std::size_t max_kept_bytes = 64U << 10;

}  // namespace

Result<Carrier> Carrier::dialled(const PairingKey& key) {
    Carrier carrier(Kind::encrypted);
    carrier.channel_ = TRY(Channel::client(key));
    return carrier;
}

Carrier Carrier::accepted(Channel::FindKey find, Plain plain) {
    Carrier carrier(Kind::undecided);
    carrier.plain_ = plain;
    carrier.find_ = std::move(find);
    return carrier;
}

Result<Bytes> Carrier::receive(Bytes bytes) {
    if (bytes.empty()) return bytes;
    if (kind_ == Kind::undecided) {
        if (bytes.front() == first_tls_byte) {
            kind_ = Kind::encrypted;
            channel_ = TRY(Channel::server(std::move(find_)));
            TRY(channel_->send(std::exchange(waiting_, {})));
        } else {
            (void)settle_plain();
        }
    }
    if (kind_ == Kind::refused)
        return fail(ErrorCode::unsupported, "it sent data without encryption, which only --insecure allows");
    if (kind_ == Kind::plain) return bytes;
    if (received_.capacity() > max_kept_bytes) received_ = {};
    received_.clear();
    TRY(channel_->receive(bytes, received_));
    return as_bytes_view(received_);
}

Result<std::string> Carrier::carry(std::string bytes) {
    if (kind_ == Kind::plain) return bytes;
    if (kind_ == Kind::undecided) {
        waiting_ += bytes;
        return std::string();
    }
    if (kind_ == Kind::refused) return std::string();
    TRY(channel_->send(bytes));
    return take_outgoing();
}

std::string Carrier::take_outgoing() {
    if (channel_) return std::exchange(channel_->outgoing(), {});
    return kind_ == Kind::plain ? std::exchange(waiting_, {}) : std::string();
}

bool Carrier::settle_plain() {
    if (kind_ == Kind::undecided) kind_ = plain_ == Plain::allowed ? Kind::plain : Kind::refused;
    if (kind_ == Kind::refused) waiting_.clear();
    return kind_ == Kind::plain;
}

void Carrier::end() {
    if (channel_) channel_->close();
}

}  // namespace flamewire::secure
