#include "server/http/connections.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <string_view>
#include <tuple>
#include <utility>

#include "secure/host.h"
#include "secure/this_machine.h"
#include "server/http/tcp_bytes.h"
#include "server/limits.h"

namespace flamewire::server {
namespace {

// Whether the descriptor still belongs to that connection, not to a file that was opened later.
bool leads_to(int socket, const Connections::Endpoint& remote) {
    Connections::Endpoint there;
    auto size = static_cast<socklen_t>(there.capacity());
    if (socket < 0 || ::getpeername(socket, there.data(), &size) != 0) return false;
    there.resize(size);
    return there == remote;
}

}  // namespace

bool Connections::admit(const Endpoint& remote, Clock::time_point now) {
    std::string host = secure::host_of(remote.address());
    if (!secure::on_this_machine(remote.address())) {
        const auto of_host = std::ranges::count_if(all_, [&](const auto& entry) { return entry.second.host == host; });
        if (static_cast<std::size_t>(of_host) >= limits::http_connections_of_host) {
            limit_reached(Limit::http_connections_of_host);
            return false;
        }
    }
    if (all_.size() >= limits::http_connections) {
        limit_reached(Limit::http_connections);
        if (!make_room()) return false;
    }
    all_[remote] = {.host = std::move(host), .since = now, .reading_since = now};
    return true;
}

// The closed connection ends a moment later, but no longer counts.
bool Connections::make_room() {
    std::map<std::string_view, std::ptrdiff_t> of_host;
    for (const auto& entry : all_) ++of_host[entry.second.host];
    const auto rank = [&](const All::value_type& entry) {
        const Connection& it = entry.second;
        return std::tuple(it.is_busy || it.socket < 0, -of_host[it.host], it.had_request, it.since);
    };
    const auto victim = std::ranges::min_element(all_, {}, rank);
    if (victim == all_.end() || victim->second.is_busy || victim->second.socket < 0) return false;
    end(*victim);
    all_.erase(victim);
    return true;
}

void Connections::end(const All::value_type& connection) {
    if (leads_to(connection.second.socket, connection.first)) ::shutdown(connection.second.socket, SHUT_RDWR);
}

void Connections::opened(const Endpoint& remote, int socket) {
    if (const auto at = all_.find(remote); at != all_.end()) at->second.socket = socket;
}

void Connections::ready(const Endpoint& remote, Clock::time_point now) {
    const auto at = all_.find(remote);
    if (at == all_.end()) return;
    at->second.is_ready = true;
    at->second.reading_since = now;
}

void Connections::busy(const Endpoint& remote) {
    const auto at = all_.find(remote);
    if (at == all_.end()) return;
    at->second.is_busy = at->second.had_request = true;
}

void Connections::sending(const Endpoint& remote, Clock::time_point now) {
    const auto at = all_.find(remote);
    if (at == all_.end()) return;
    at->second.is_sending = true;
    at->second.sending_since = now;
    at->second.taken_before = tcp_bytes_acknowledged(at->second.socket);
}

void Connections::idle(const Endpoint& remote, Clock::time_point now) {
    const auto at = all_.find(remote);
    if (at == all_.end()) return;
    at->second.is_busy = at->second.is_sending = false;
    at->second.since = at->second.reading_since = now;
    at->second.bytes_before = tcp_bytes_received(at->second.socket);
}

bool Connections::is_open(const Endpoint& remote) const {
    const auto at = all_.find(remote);
    if (at == all_.end()) return false;
    pollfd state{.fd = at->second.socket, .events = POLLRDHUP, .revents = 0};
    return state.fd < 0 || ::poll(&state, 1, 0) <= 0 || (state.revents & (POLLRDHUP | POLLHUP | POLLERR)) == 0;
}

bool Connections::is_too_slow(Connection& it, Clock::time_point now) {
    const auto time = std::chrono::duration_cast<std::chrono::seconds>(now - it.sending_since);
    if (time < limits::http_write_time) return false;
    const std::uint64_t taken = tcp_bytes_acknowledged(it.socket);
    const std::uint64_t bytes = taken - std::min(taken, it.taken_before);
    if (bytes / limits::http_write_rate < static_cast<std::uint64_t>(time.count())) return it.socket >= 0;
    it.sending_since = now;
    it.taken_before = taken;
    return false;
}

void Connections::close_slow(Clock::time_point now) {
    for (auto& entry : all_) {
        Connection& it = entry.second;
        if (it.is_sending && is_too_slow(it, now)) {
            limit_reached(Limit::http_write_rate);
            end(entry);
            it.is_sending = false;
        }
        if (it.is_busy || !it.is_ready) continue;
        const std::uint64_t received = tcp_bytes_received(it.socket);
        const std::uint64_t bytes = received - std::min(received, it.bytes_before);
        if (it.had_request && bytes == 0) it.reading_since = now;  // nothing is arriving
        const auto time = std::chrono::duration_cast<std::chrono::seconds>(now - it.reading_since);
        if (time < limits::http_header_time ||
            bytes / limits::http_read_rate >= static_cast<std::uint64_t>(time.count()))
            continue;
        limit_reached(Limit::http_header_time);
        end(entry);
    }
}

}  // namespace flamewire::server
