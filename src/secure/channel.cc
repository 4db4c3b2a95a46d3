#include "secure/channel.h"

#include <sys/random.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <mbedtls/platform_util.h>
#include <mbedtls/ssl.h>
#include <mbedtls/version.h>

namespace flamewire::secure {
namespace {

constexpr std::array<int, 2> suites{MBEDTLS_TLS_ECDHE_PSK_WITH_CHACHA20_POLY1305_SHA256, 0};
constexpr std::array<mbedtls_ecp_group_id, 2> curves{MBEDTLS_ECP_DP_CURVE25519, MBEDTLS_ECP_DP_NONE};

// Random number callback for mbed TLS; uses the kernel's generator.
int kernel_random(void* /*unused*/, unsigned char* out, std::size_t size) {
    while (size > 0) {
        const ssize_t got = ::getrandom(out, size, 0);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return MBEDTLS_ERR_SSL_INTERNAL_ERROR;
        out += got;
        size -= static_cast<std::size_t>(got);
    }
    return 0;
}

const unsigned char* bytes_of(std::string_view text) { return reinterpret_cast<const unsigned char*>(text.data()); }

class TlsChannel final : public Channel {
public:
    TlsChannel() {
        mbedtls_ssl_init(&tls_);
        mbedtls_ssl_config_init(&config_);
    }
    TlsChannel(const TlsChannel&) = delete;
    TlsChannel& operator=(const TlsChannel&) = delete;
    ~TlsChannel() override {
        mbedtls_ssl_free(&tls_);
        mbedtls_ssl_config_free(&config_);
        mbedtls_platform_zeroize(waiting_.data(), waiting_.size());
    }

    Result<bool> begin(int endpoint, const PairingKey* key, FindKey find);

    Result<bool> receive(Bytes bytes, std::string& plain) override;
    Result<bool> send(std::string_view plain) override;
    void close() override {
        if (established_) (void)mbedtls_ssl_close_notify(&tls_);
    }
    std::string& outgoing() override { return outgoing_; }
    [[nodiscard]] bool established() const override { return established_; }
    [[nodiscard]] bool key_exchange_begun() const override { return tls_.state > MBEDTLS_SSL_SERVER_KEY_EXCHANGE; }
    [[nodiscard]] const std::string& key_id() const override { return key_id_; }

private:
    static int give(void* self, const unsigned char* bytes, std::size_t size);
    static int take(void* self, unsigned char* bytes, std::size_t size);
    static int find_key(void* self, mbedtls_ssl_context* tls, const unsigned char* id, std::size_t size);
    Result<bool> shake_hands();
    std::unexpected<Error> failed(int error);

    mbedtls_ssl_context tls_{};
    mbedtls_ssl_config config_{};
    FindKey find_;
    Bytes incoming_;  // unread rest of the bytes in receive()
    std::string outgoing_, waiting_, claimed_id_, key_id_;
    bool established_ = false;
};

Result<bool> TlsChannel::begin(int endpoint, const PairingKey* key, FindKey find) {
    find_ = std::move(find);
    mbedtls_ssl_conf_endpoint(&config_, endpoint);
    mbedtls_ssl_conf_transport(&config_, MBEDTLS_SSL_TRANSPORT_STREAM);
    mbedtls_ssl_conf_rng(&config_, kernel_random, nullptr);
    mbedtls_ssl_conf_min_version(&config_, MBEDTLS_SSL_MAJOR_VERSION_3, MBEDTLS_SSL_MINOR_VERSION_3);
    mbedtls_ssl_conf_max_version(&config_, MBEDTLS_SSL_MAJOR_VERSION_3, MBEDTLS_SSL_MINOR_VERSION_3);
    mbedtls_ssl_conf_ciphersuites(&config_, suites.data());
    mbedtls_ssl_conf_curves(&config_, curves.data());
    mbedtls_ssl_conf_extended_master_secret(&config_, MBEDTLS_SSL_EXTENDED_MS_ENABLED);
    int error = 0;
    if (key != nullptr) {
        claimed_id_ = key->id;
        error = mbedtls_ssl_conf_psk(&config_, bytes_of(key->secret), key->secret.size(), bytes_of(key->id),
                                     key->id.size());
    } else {
        mbedtls_ssl_conf_psk_cb(&config_, find_key, this);
    }
    if (error == 0) error = mbedtls_ssl_setup(&tls_, &config_);
    if (error != 0) return fail(ErrorCode::io, "no memory for an encrypted connection");
    mbedtls_ssl_set_bio(&tls_, this, give, take, nullptr);
    // The client sends the first message.
    return endpoint == MBEDTLS_SSL_IS_CLIENT ? shake_hands() : Result<bool>(true);
}

int TlsChannel::give(void* self, const unsigned char* bytes, std::size_t size) {
    static_cast<TlsChannel*>(self)->outgoing_.append(reinterpret_cast<const char*>(bytes), size);
    return static_cast<int>(size);
}

int TlsChannel::take(void* self, unsigned char* bytes, std::size_t size) {
    Bytes& incoming = static_cast<TlsChannel*>(self)->incoming_;
    if (incoming.empty()) return MBEDTLS_ERR_SSL_WANT_READ;
    const std::size_t taken = std::min(size, incoming.size());
    std::memcpy(bytes, incoming.data(), taken);
    incoming = incoming.subspan(taken);
    return static_cast<int>(taken);
}

// An unknown id gets a random key, so it fails at the same point as a wrong key.
int TlsChannel::find_key(void* self, mbedtls_ssl_context* tls, const unsigned char* id, std::size_t size) {
    auto& channel = *static_cast<TlsChannel*>(self);
    channel.claimed_id_.assign(reinterpret_cast<const char*>(id), std::min(size, 2 * PairingKey::id_bytes));
    std::array<unsigned char, PairingKey::secret_bytes> nobodys{};
    if (const int error = kernel_random(nullptr, nobodys.data(), nobodys.size()); error != 0) return error;
    const std::optional<PairingKey> key = channel.find_(channel.claimed_id_);
    if (!key || key->secret.size() != nobodys.size())
        return mbedtls_ssl_set_hs_psk(tls, nobodys.data(), nobodys.size());
    return mbedtls_ssl_set_hs_psk(tls, bytes_of(key->secret), key->secret.size());
}

std::unexpected<Error> TlsChannel::failed(int error) {
    const char* const wrong_key = "the pairing keys of the two ends are not the same, or this one was withdrawn";
    if (error == MBEDTLS_ERR_SSL_PEER_CLOSE_NOTIFY) return fail(ErrorCode::closed, "it closed the connection");
    if (error == MBEDTLS_ERR_SSL_FATAL_ALERT_MESSAGE) {
        const unsigned char alert = tls_.in_msg[1];
        if (!established_ &&
            (alert == MBEDTLS_SSL_ALERT_MSG_BAD_RECORD_MAC || alert == MBEDTLS_SSL_ALERT_MSG_DECRYPT_ERROR ||
             alert == MBEDTLS_SSL_ALERT_MSG_UNKNOWN_PSK_IDENTITY))
            return fail(ErrorCode::permission, wrong_key);
        return fail(ErrorCode::closed,
                    "it ended the encrypted connection (TLS alert " + std::to_string(unsigned{alert}) + ")");
    }
    if (error == MBEDTLS_ERR_SSL_INVALID_MAC)
        return established_ ? fail(ErrorCode::invalid, "what it sent was changed on the way")
                            : fail(ErrorCode::permission, wrong_key);
    return fail(ErrorCode::invalid,
                "it does not speak TLS as this program does (error -" + std::to_string(-error) + ")");
}

Result<bool> TlsChannel::shake_hands() {
    const int error = mbedtls_ssl_handshake(&tls_);
    if (error == MBEDTLS_ERR_SSL_WANT_READ) return true;
    if (error != 0) return failed(error);
    established_ = true;
    key_id_ = claimed_id_;
    std::string waiting = std::exchange(waiting_, {});
    auto sent = send(waiting);
    mbedtls_platform_zeroize(waiting.data(), waiting.size());
    return sent;
}

Result<bool> TlsChannel::receive(Bytes bytes, std::string& plain) {
    incoming_ = bytes;
    while (true) {
        if (!established_) {
            TRY(shake_hands());
            if (!established_) return true;
        }
        std::array<unsigned char, 16384> part;
        const int count = mbedtls_ssl_read(&tls_, part.data(), part.size());
        if (count == MBEDTLS_ERR_SSL_WANT_READ) return true;
        if (count <= 0) return failed(count == 0 ? MBEDTLS_ERR_SSL_PEER_CLOSE_NOTIFY : count);
        plain.append(reinterpret_cast<const char*>(part.data()), static_cast<std::size_t>(count));
    }
}

Result<bool> TlsChannel::send(std::string_view plain) {
    if (!established_) {
        waiting_ += plain;
        return true;
    }
    while (!plain.empty()) {
        const int count = mbedtls_ssl_write(&tls_, bytes_of(plain), plain.size());
        if (count <= 0) return failed(count);
        plain.remove_prefix(static_cast<std::size_t>(count));
    }
    return true;
}

}  // namespace

const char* tls_library() { return MBEDTLS_VERSION_STRING_FULL; }

Result<std::unique_ptr<Channel>> Channel::client(const PairingKey& key) {
    auto channel = std::make_unique<TlsChannel>();
    TRY(channel->begin(MBEDTLS_SSL_IS_CLIENT, &key, nullptr));
    return channel;
}

Result<std::unique_ptr<Channel>> Channel::server(FindKey find) {
    auto channel = std::make_unique<TlsChannel>();
    TRY(channel->begin(MBEDTLS_SSL_IS_SERVER, nullptr, std::move(find)));
    return channel;
}

}  // namespace flamewire::secure
