// What accepts HTTP connections, with TLS or without, and counts those that are open.
#pragma once

// RESTinio's headers are not written for our warnings.
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

#include <cstddef>
#include <memory>
#include <utility>

#include "server/limits.h"

namespace flamewire::server {

// RESTinio accepts no more while so many are open; of the thread of its io_context.
class ConnectionCount {
public:
    void state_changed(const restinio::connection_state::notice_t& notice) noexcept {
        const restinio::connection_state::cause_t cause = notice.cause();
        if (nonstd::holds_alternative<restinio::connection_state::accepted_t>(cause) &&
            ++open_ == limits::http_connections)
            limit_reached(Limit::http_connections);
        if (nonstd::holds_alternative<restinio::connection_state::closed_t>(cause)) --open_;
    }

private:
    std::size_t open_ = 0;
};

template <class Base>
struct Counting : Base {
    static constexpr bool use_connection_count_limiter = true;
    using connection_state_listener_t = ConnectionCount;
};
using PlainTraits = Counting<restinio::single_thread_traits_t<restinio::asio_timer_manager_t, restinio::null_logger_t>>;
using TlsTraits =
    Counting<restinio::single_thread_tls_traits_t<restinio::asio_timer_manager_t, restinio::null_logger_t>>;

// RESTinio finds this by its arguments, in the place of its own, which waits for the end of a handshake as long as the other
// end likes.
template <class Begin, class Failed>
void prepare_connection_and_start_read(restinio::impl::tls_socket_t& socket,
                                       restinio::impl::connection_t<TlsTraits>& connection, Begin begin,
                                       Failed failed) {
    // The socket is the connection's.
    const auto self = connection.shared_from_this();
    const auto deadline = std::make_shared<asio::steady_timer>(socket.get_executor(), limits::tls_handshake_time);
    const auto over = std::make_shared<bool>(false);
    deadline->async_wait([self, over, &socket](const asio::error_code& error) {
        if (error || *over) return;
        limit_reached(Limit::tls_handshake_time);
        asio::error_code ignored;
        socket.lowest_layer().close(ignored);
    });
    socket.async_handshake(asio::ssl::stream_base::server, [self, deadline, over, begin = std::move(begin),
                                                            failed = std::move(failed)](const asio::error_code& error) {
        *over = true;
        deadline->cancel();
        if (error)
            failed(error);
        else
            begin();
    });
}

// What accepts connections, one of the two. An idle connection waits in the io_context until that is gone, and its end is
// counted in what accepted it: so that stands there, too, where it outlives all that waits.
struct Acceptor final : asio::execution_context::service {
    inline static asio::execution_context::id id;
    using key_type = Acceptor;

    explicit Acceptor(asio::execution_context& io) : service(io) {}
    void close() {
        if (plain) plain->close_sync();
        if (tls) tls->close_sync();
    }

    std::unique_ptr<restinio::http_server_t<PlainTraits>> plain;
    std::unique_ptr<restinio::http_server_t<TlsTraits>> tls;

private:
    void shutdown() noexcept override {}
};

}  // namespace flamewire::server
