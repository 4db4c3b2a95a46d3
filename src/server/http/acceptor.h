// Accepts HTTP connections, with or without TLS, and tracks which are open.
#pragma once

// RESTinio's headers trigger our warnings.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wsign-conversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wold-style-cast"
#pragma GCC diagnostic ignored "-Wpedantic"
#include <restinio/all.hpp>
#include <restinio/tls.hpp>
#pragma GCC diagnostic pop

#include <asio/steady_timer.hpp>
#include <spdlog/spdlog.h>

#include <memory>
#include <string>
#include <utility>

#include "server/http/connections.h"
#include "server/limits.h"

namespace flamewire::server {

// Connects RESTinio to Connections: RESTinio asks before it accepts a connection and reports when one closes.
class ConnectionWatch {
public:
    explicit ConnectionWatch(std::shared_ptr<Connections> connections) : connections_(std::move(connections)) {}
    restinio::ip_blocker::inspection_result_t inspect(const restinio::ip_blocker::incoming_info_t& info) noexcept {
        return connections_->admit(info.remote_endpoint()) ? restinio::ip_blocker::allow()
                                                           : restinio::ip_blocker::deny();
    }
    void state_changed(const restinio::connection_state::notice_t& notice) noexcept {
        if (nonstd::holds_alternative<restinio::connection_state::closed_t>(notice.cause()))
            connections_->closed(notice.remote_endpoint());
    }

private:
    const std::shared_ptr<Connections> connections_;
};

// RESTinio closes a connection after an invalid or too long request and passes the reason only to its logger.
class MessageLog {
public:
    template <class Message>
    void trace(Message&& /*unused*/) const noexcept {}
    template <class Message>
    void info(Message&& /*unused*/) const noexcept {}
    template <class Message>
    void warn(Message&& /*unused*/) const noexcept {}
    template <class Message>
    void error(Message&& message) const noexcept {
        restinio::utils::suppress_exceptions_quietly([&] { closed(message()); });
    }

private:
    static void closed(const std::string& why) {
        if (why.find("parser error") != std::string::npos) limit_reached(Limit::http_message);
        spdlog::debug("a browser's connection is closed: {}", why);
    }
};

template <class Base>
struct Watched : Base {
    static constexpr bool use_connection_count_limiter = true;
    // RESTinio's names. NOLINTBEGIN(readability-identifier-naming)
    using connection_state_listener_t = ConnectionWatch;
    using ip_blocker_t = ConnectionWatch;
    // NOLINTEND(readability-identifier-naming)
};
using PlainTraits = Watched<restinio::single_thread_traits_t<restinio::asio_timer_manager_t, MessageLog>>;
using TlsTraits = Watched<restinio::single_thread_tls_traits_t<restinio::asio_timer_manager_t, MessageLog>>;

// Accepts connections by one of the two servers. An idle connection stays in the io_context until that is destroyed,
// and its end still updates Connections. As a service of the io_context, Acceptor outlives everything that waits there.
struct Acceptor final : asio::execution_context::service {
    inline static asio::execution_context::id id;
    using key_type = Acceptor;  // Asio's name. NOLINT(readability-identifier-naming)

    explicit Acceptor(asio::execution_context& io) : service(io) {}
    void close() {
        if (plain) plain->close_sync();
        if (tls) tls->close_sync();
    }

    const std::shared_ptr<Connections> connections = std::make_shared<Connections>();
    std::unique_ptr<restinio::http_server_t<PlainTraits>> plain;
    std::unique_ptr<restinio::http_server_t<TlsTraits>> tls;

private:
    void shutdown() noexcept override {}
};

template <class Socket>
Connections& connections_of(Socket& socket) {
    return *asio::use_service<Acceptor>(asio::query(socket.get_executor(), asio::execution::context)).connections;
}

// RESTinio finds these overloads by their arguments and uses them instead of its own.
template <class Begin, class Failed>
void prepare_connection_and_start_read(asio::ip::tcp::socket& socket,
                                       restinio::impl::connection_t<PlainTraits>& /*connection*/, Begin begin,
                                       Failed /*failed*/) {
    asio::error_code gone;
    const auto remote = socket.remote_endpoint(gone);
    Connections& connections = connections_of(socket);
    connections.opened(remote, socket.native_handle());
    connections.ready(remote);
    begin();
}

// RESTinio's own version waits without limit for the end of a handshake.
template <class Begin, class Failed>
void prepare_connection_and_start_read(restinio::impl::tls_socket_t& socket,
                                       restinio::impl::connection_t<TlsTraits>& connection, Begin begin,
                                       Failed failed) {
    // The connection owns the socket.
    const auto self = connection.shared_from_this();
    asio::error_code gone;
    const auto remote = socket.lowest_layer().remote_endpoint(gone);
    Connections& connections = connections_of(socket);
    connections.opened(remote, socket.lowest_layer().native_handle());
    const auto deadline = std::make_shared<asio::steady_timer>(socket.get_executor(), limits::tls_handshake_time);
    const auto over = std::make_shared<bool>(false);
    deadline->async_wait([self, over, &socket](const asio::error_code& error) {
        if (error || *over) return;
        limit_reached(Limit::tls_handshake_time);
        asio::error_code ignored;
        socket.lowest_layer().close(ignored);
    });
    socket.async_handshake(asio::ssl::stream_base::server,
                           [self, &connections, remote, deadline, over, begin = std::move(begin),
                            failed = std::move(failed)](const asio::error_code& error) {
                               *over = true;
                               deadline->cancel();
                               if (error) return failed(error);
                               connections.ready(remote);
                               begin();
                           });
}

}  // namespace flamewire::server
