// Tracks the open HTTP connections and what each is doing, and closes some if there are too many. Not thread-safe: use
// it on the thread of their io_context.
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

    // Whether to accept a connection. Each remote host has a limit; this machine has none, because a reverse proxy here
    // serves many people. If all are taken, closes one without a request, of the host that has the most: the oldest
    // that never sent a whole request, otherwise the one idle longest.
    bool admit(const Endpoint& remote, Clock::time_point now = Clock::now());
    // `socket` belongs to the caller. Requests are expected after ready(). A TLS handshake before it has its own limit.
    void opened(const Endpoint& remote, int socket);
    void ready(const Endpoint& remote, Clock::time_point now = Clock::now());
    void closed(const Endpoint& remote) { all_.erase(remote); }

    // busy(): a whole request arrived. sending(): its answer is being sent. idle(): the answer was sent.
    void busy(const Endpoint& remote);
    void sending(const Endpoint& remote, Clock::time_point now = Clock::now());
    void idle(const Endpoint& remote, Clock::time_point now = Clock::now());

    // False: the other end has closed the connection, or its sending direction.
    [[nodiscard]] bool is_open(const Endpoint& remote) const;

    // Call it about once per second. Closes connections whose request has been arriving for limits::http_header_time
    // and is slower than limits::http_read_rate. The time of a first request starts with the connection. Also closes
    // those that accept an answer at less than limits::http_write_rate for limits::http_write_time.
    void close_slow(Clock::time_point now = Clock::now());

private:
    struct Connection {
        std::string host;  // secure::host_of()
        int socket = -1;
        bool is_ready = false, is_busy = false, is_sending = false, had_request = false;
        Clock::time_point since{};          // its last answer, or its start
        Clock::time_point reading_since{};  // of the request that is arriving
        std::uint64_t bytes_before = 0;     // received until then
        Clock::time_point sending_since{};  // or since it was last found fast enough
        std::uint64_t taken_before = 0;     // acknowledged by the other end until then
    };
    using All = std::map<Endpoint, Connection>;

    bool make_room();
    static bool is_too_slow(Connection& connection, Clock::time_point now);
    static void end(const All::value_type& connection);

    All all_;
};

}  // namespace flamewire::server
