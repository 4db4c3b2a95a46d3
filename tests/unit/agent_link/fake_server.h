// The server's end of the link for tests: plain sockets, one connection at a time, cut at any position.
#pragma once

#include <catch2/catch.hpp>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <arpa/inet.h>
#include <array>
#include <netinet/in.h>
#include <optional>
#include <string>

#include "base/bytes.h"
#include "base/fd.h"
#include "wire/control.h"
#include "wire/frame.h"

namespace flamewire::agent {

inline sockaddr_in loopback(std::uint16_t port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
}

inline bool readable(int fd, int timeout_ms) {
    pollfd wait{fd, POLLIN, 0};
    return ::poll(&wait, 1, timeout_ms) == 1;
}

// One connection, seen from the server.
class Peer {
public:
    explicit Peer(UniqueFd fd) : fd_(std::move(fd)) {}

    // Returns the next frame, or nothing if the other end closed or was silent for `timeout_ms`. Reads at most `budget`
    // bytes at a time.
    std::optional<wire::Frame> frame(int timeout_ms = 5000, std::size_t budget = 4096) {
        for (;;) {
            auto next = decoder_.next();
            REQUIRE(next);
            if (*next) return std::move(**next);
            if (!readable(fd_.get(), timeout_ms)) return std::nullopt;
            std::array<std::byte, 4096> buffer{};
            const ssize_t got = ::recv(fd_.get(), buffer.data(), std::min(budget, buffer.size()), 0);
            if (got <= 0) {
                closed_ = true;
                return std::nullopt;
            }
            decoder_.feed(std::span(buffer).first(static_cast<std::size_t>(got)));
        }
    }

    wire::Hello hello() {
        const auto first = frame();
        REQUIRE(first);
        REQUIRE(first->flag == wire::Flag::reply);
        const auto hello = wire::parse_hello(first->payload);
        REQUIRE(hello);
        return *hello;
    }

    // Returns false if the other end is gone.
    bool send_raw(std::string_view bytes) {
        return ::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size());
    }
    bool send(wire::Flag flag, std::string_view json) { return send_raw(wire::encode_frame(flag, json)); }
    bool acknowledge(std::optional<wire::RecordingId> recording, std::uint64_t seq) {
        return send(wire::Flag::acknowledgement, wire::encode_ack({recording, seq}));
    }

    // With `reset`, the other end gets ECONNRESET and buffered bytes are lost.
    void cut(bool reset) {
        const linger now{1, 0};
        if (reset) ::setsockopt(fd_.get(), SOL_SOCKET, SO_LINGER, &now, sizeof now);
        fd_.reset();
    }
    [[nodiscard]] bool closed() const { return closed_; }

private:
    UniqueFd fd_;
    wire::FrameDecoder decoder_{wire::max_payload_from_agent};
    bool closed_ = false;
};

inline Peer dial(std::uint16_t port) {
    UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const sockaddr_in address = loopback(port);
    REQUIRE(::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
    return Peer(std::move(fd));
}

class Listener {
public:
    // Port 0 means any port.
    explicit Listener(std::uint16_t port = 0) {
        fd_.reset(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
        const int yes = 1;
        ::setsockopt(fd_.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
        sockaddr_in address = loopback(port);
        REQUIRE(::bind(fd_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
        REQUIRE(::listen(fd_.get(), 8) == 0);
        socklen_t size = sizeof address;
        ::getsockname(fd_.get(), reinterpret_cast<sockaddr*>(&address), &size);
        port_ = ntohs(address.sin_port);
    }
    Peer accept() {
        REQUIRE(readable(fd_.get(), 10'000));
        return Peer(UniqueFd(::accept4(fd_.get(), nullptr, nullptr, SOCK_CLOEXEC)));
    }
    [[nodiscard]] std::uint16_t port() const { return port_; }
    void close() { fd_.reset(); }

private:
    UniqueFd fd_;
    std::uint16_t port_ = 0;
};

}  // namespace flamewire::agent
