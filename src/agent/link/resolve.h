// Host name -> addresses, on a thread that nobody waits for: getaddrinfo can take half a minute and cannot be
// cancelled.
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

// Owns a look-up that is under way; when it goes, the answer is dropped.
class Resolution {
public:
    // `done` is called on the thread that runs `io`. A literal address is answered at once, without a thread.
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
