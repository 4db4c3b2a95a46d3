// Which HTTP connections are open, what each is doing, and which are closed when there are too many. Not thread-safe: use
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

    // Whether a connection from there may be accepted. A host other than this machine may have a part of them; on this
    // machine a reverse proxy opens those of many people. If all are taken, one without a request is closed to make room,
    // of the host that has the most: the oldest that has never sent a whole request, else the one idle for longest.
    bool admit(const Endpoint& remote, Clock::time_point now = Clock::now());
    // `socket` belongs to the caller. Requests are expected from ready() on; a TLS handshake before it has its own limit.
    void opened(const Endpoint& remote, int socket);
    void ready(const Endpoint& remote, Clock::time_point now = Clock::now());
    void closed(const Endpoint& remote) { all_.erase(remote); }

    // A whole request came, its answer is being sent, and it was sent.
    void busy(const Endpoint& remote);
    void sending(const Endpoint& remote, Clock::time_point now = Clock::now());
    void idle(const Endpoint& remote, Clock::time_point now = Clock::now());

    // False: the other end has closed the connection, or its direction of it.
    [[nodiscard]] bool is_open(const Endpoint& remote) const;

    // Call it about once a second. Closes connections whose request has been arriving for limits::http_header_time and is
    // slower than limits::http_read_rate. The time of a first request begins with the connection. Also closes those whose
    // other end takes an answer at less than limits::http_write_rate for limits::http_write_time.
    void close_slow(Clock::time_point now = Clock::now());

private:
    struct Connection {
        std::string host;  // secure::host_of()
        int socket = -1;
        bool is_ready = false, is_busy = false, is_sending = false, had_request = false;
        Clock::time_point since{};          // its last answer, or its begin
        Clock::time_point reading_since{};  // of the request that is coming
        std::uint64_t bytes_before = 0;     // received until then
        Clock::time_point sending_since{};  // or since it was found fast enough
        std::uint64_t taken_before = 0;     // by the other end until then
    };
    using All = std::map<Endpoint, Connection>;

    bool make_room();
    static bool takes_too_little(Connection& connection, Clock::time_point now);
    static void end(const All::value_type& connection);

    All all_;
};

}  // namespace flamewire::server
