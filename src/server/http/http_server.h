// HTTP and server-sent events on the io thread. This is the only part that includes RESTinio. api.h produces the
// answers.
#pragma once

#include <asio/io_context.hpp>
#include <asio/thread_pool.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "server/http/api.h"
#include "server/http/event_stream.h"

namespace flamewire::server {

class HttpServer {
public:
    struct Options {
        std::string bind = "127.0.0.1";
        std::uint16_t port = 8080;
        std::vector<std::string> names;          // host names besides localhost that browsers may use
        std::string prefix = "/";                // the path at a reverse proxy: "/" or "/name/"
        std::string token;                       // empty: no login required
        std::string certificate_file, key_file;  // PEM; empty: no TLS
        std::string web_dir;                     // the page's files, for development; empty: those in this executable
    };

    // Threads for answers. Quick answers never wait for a query.
    static constexpr std::size_t quick_workers = 1, query_workers = 2, writing_workers = 1;
    struct Workers {
        asio::thread_pool& quick;
        asio::thread_pool& queries;
        asio::thread_pool& writing;  // archives, and sessions made of others
    };

    // The port is bound when this returns (chosen by the kernel for 0). busy or permission: one sentence with its
    // remedy. invalid: the certificate or key cannot be used. Call serve() afterwards, because an Api needs the port.
    static Result<std::unique_ptr<HttpServer>> start(asio::io_context& io, const Workers& workers,
                                                     Symbolization& symbols, SessionLoader& loader,
                                                     const Options& options, EventTexts::State state);
    virtual ~HttpServer() = default;

    [[nodiscard]] virtual std::uint16_t port() const = 0;
    virtual void serve(Api& api) = 0;

    // Something changed: notify the stream's readers. On the io thread.
    virtual void status_changed() = 0;
    virtual void session_changed(const std::string& id) = 0;
    virtual void agent_changed(const std::string& id) = 0;
    virtual void sessions_changed() = 0;
    virtual void stop() = 0;
};

}  // namespace flamewire::server
