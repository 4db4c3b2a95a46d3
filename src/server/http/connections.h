// Which HTTP connections are open, what each is doing, and who has to go when there are too many. All of the thread of
// their io_context.
#pragma once

#include <asio/ip/tcp.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

namespace flamewire::server {

class Connections {
public:
    using Clock = std::chrono::steady_clock;
    using Endpoint = asio::ip::tcp::endpoint;

    // Whether a connection from there may be accepted. A host other than this machine may have a part of them (on this
    // machine a reverse proxy comes with many people's). Where all are taken, one that only waits for a request gives way:
    // the oldest that has never sent a whole one, else the one that has been idle for longest.
    bool admit(const Endpoint& remote, Clock::time_point now = Clock::now());
    // Its socket, which stays its owner's. It is asked for requests when it is ready: TLS has a time of its own before.
    void opened(const Endpoint& remote, int socket);
    void ready(const Endpoint& remote, Clock::time_point now = Clock::now());
    void closed(const Endpoint& remote) { all_.erase(remote); }

    // A whole request came, and its answer was sent.
    void busy(const Endpoint& remote);
    void idle(const Endpoint& remote, Clock::time_point now = Clock::now());

    // False: the other end is gone, or sends and reads no more.
    [[nodiscard]] bool wants_answer(const Endpoint& remote) const;

    // Every second or so: closes those whose request has been coming for limits::http_header_time and is slower than
    // limits::http_read_rate, the first request counted from the connection on.
    void close_slow(Clock::time_point now = Clock::now());

private:
    struct Connection {
        std::string host;  // secure::host_of()
        int socket = -1;
        bool is_ready = false, is_busy = false, had_request = false;
        Clock::time_point since{};          // its last answer, or its begin
        Clock::time_point reading_since{};  // of the request that is coming
        std::uint64_t bytes_before = 0;     // received until then
    };
    using All = std::map<Endpoint, Connection>;

    bool make_room();
    static void end(const All::value_type& connection);

    All all_;
};

}  // namespace flamewire::server
