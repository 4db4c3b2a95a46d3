// Host name -> addresses, on a detached thread: getaddrinfo can take half a minute and cannot be canceled.
#pragma once

#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"

namespace flamewire::agent {

using Endpoints = std::vector<asio::ip::tcp::endpoint>;

// Owns a pending lookup. Its destructor discards the result.
class Resolution {
public:
    // `done` is called on the thread that runs `io`. A literal address is resolved without a thread.
    Resolution(asio::io_context& io, const std::string& host, std::uint16_t port,
               std::function<void(Result<Endpoints>)> done);
    ~Resolution();
    Resolution(const Resolution&) = delete;
    Resolution& operator=(const Resolution&) = delete;

    struct State;

private:
    std::shared_ptr<State> state_;
};

}  // namespace flamewire::agent
