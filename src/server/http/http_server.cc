#include "server/http/http_server.h"

#include <asio/post.hpp>
#include <asio/steady_timer.hpp>
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <chrono>

#include "profile/store/interruption.h"
#include "server/http/acceptor.h"
#include "server/http/access.h"
#include "server/http/assets.h"
#include "server/http/connections.h"
#include "server/http/event_readers.h"
#include "server/http/messages.h"
#include "server/http/request_queue.h"
#include "server/limits.h"

namespace flamewire::server {
namespace {

constexpr std::chrono::seconds heartbeat{10};
constexpr std::size_t closing_connections = 64;

class Server final : public HttpServer {
public:
    Server(asio::io_context& io, const Workers& workers, Symbolization& symbols, SessionLoader& loader, Options options,
           EventTexts::State state)
        : io_(io),
          loader_(loader),
          options_(std::move(options)),
          readers_(io, std::move(state)),
          beat_(io),
          second_(io),
          acceptor_(asio::use_service<Acceptor>(io)),
          connections_(acceptor_.connections),
          quick_(io, quick_workers, limits::http_connections, limits::query_time,
                 [workers](auto job) { asio::post(workers.quick, std::move(job)); }),
          queries_(io, query_workers, limits::http_waiting, limits::query_time,
                   [workers](auto job) { asio::post(workers.queries, std::move(job)); }),
          writing_(io, writing_workers, limits::http_waiting, limits::background_query_time,
                   [workers](auto job) { asio::post(workers.writing, std::move(job)); }),
          background_(io, 1, limits::http_waiting, limits::background_query_time,
                      [&symbols](auto job) { symbols.post(std::move(job)); }) {}

    Result<bool> open() {
        std::error_code bad_address;
        const auto address = asio::ip::make_address(options_.bind, bad_address);
        if (bad_address)
            return fail(ErrorCode::invalid, fmt::format("--http-bind {} is not an IP address", options_.bind));
        limit_headers();
        try {
            if (options_.certificate_file.empty()) {
                acceptor_.plain = std::make_unique<restinio::http_server_t<PlainTraits>>(
                    restinio::external_io_context(io_), [&](auto& settings) { apply_settings(settings, address); });
                acceptor_.plain->open_sync();
            } else {
                asio::ssl::context context = TRY(tls_context());
                acceptor_.tls = std::make_unique<restinio::http_server_t<TlsTraits>>(
                    restinio::external_io_context(io_), [&](auto& settings) {
                        apply_settings(settings, address);
                        settings.tls_context(std::move(context));
                    });
                acceptor_.tls->open_sync();
            }
        } catch (const std::system_error& error) {
            return open_failed(error.code(), error.what());
        } catch (const std::exception& error) {
            return fail(ErrorCode::io, error.what());
        }
        if (!options_.token.empty())
            access_ = Access(options_.token, options_.prefix, port_, !options_.certificate_file.empty());
        beat();
        watch_connections();
        return true;
    }

    std::uint16_t port() const override { return port_; }
    void serve(Api& api) override { api_ = &api; }

    void status_changed() override { readers_.status_changed(); }
    void session_changed(const std::string& id) override { readers_.session_changed(id); }
    void agent_changed(const std::string& id) override { readers_.agent_changed(id); }
    void sessions_changed() override { readers_.sessions_changed(); }

    void stop() override {
        stopping_ = true;
        beat_.cancel();
        second_.cancel();
        for (RequestQueue* queue : {&quick_, &queries_, &writing_, &background_}) queue->stop();
        readers_.stop();
        acceptor_.close();
    }

private:
    template <class Settings>
    void apply_settings(Settings& settings, const asio::ip::address& address) {
        const auto watch = std::make_shared<ConnectionWatch>(connections_);
        settings.address(address)
            .protocol(address.is_v6() ? asio::ip::tcp::v6() : asio::ip::tcp::v4())
            .port(options_.port)
            // Connections that are closing still count here.
            .max_parallel_connections(limits::http_connections + closing_connections)
            .connection_state_listener(watch)
            .ip_blocker(watch)
            // Commands wait that long for agents. The stream's heartbeat is more frequent.
            .handle_request_timeout(std::chrono::seconds(660))
            .read_next_http_message_timelimit(limits::http_read_time)
            .write_http_response_timelimit(limits::http_write_time)
            .incoming_http_msg_limits(message_limits())
            .acceptor_post_bind_hook([this](asio::ip::tcp::acceptor& acceptor) {
                std::error_code ignored;
                port_ = acceptor.local_endpoint(ignored).port();
            })
            .request_handler([this](RequestHandle handle) { return handle_request(handle); });
    }

    [[nodiscard]] Result<asio::ssl::context> tls_context() const {
        asio::ssl::context context(asio::ssl::context::tls_server);
        context.set_options(asio::ssl::context::default_workarounds | asio::ssl::context::no_tlsv1 |
                            asio::ssl::context::no_tlsv1_1);
        asio::error_code error;
        context.use_certificate_chain_file(options_.certificate_file, error);
        if (error)
            return fail(ErrorCode::invalid, fmt::format("--http-cert {} is not a readable certificate in PEM: {}",
                                                        options_.certificate_file, error.message()));
        context.use_private_key_file(options_.key_file, asio::ssl::context::pem, error);
        if (error)
            return fail(ErrorCode::invalid,
                        fmt::format("--http-key {} is not a private key in PEM that matches the certificate: {}",
                                    options_.key_file, error.message()));
        return context;
    }

    Result<bool> open_failed(const std::error_code& code, const char* what) const {
        if (code == asio::error::address_in_use)
            return fail(ErrorCode::busy,
                        fmt::format("port {} on {} is in use: stop the program that has it, or choose another with "
                                    "--http-port",
                                    options_.port, options_.bind));
        if (code == asio::error::access_denied)
            return fail(ErrorCode::permission,
                        fmt::format("port {} needs privileges: choose one above 1023 with --http-port", options_.port));
        return fail(ErrorCode::io,
                    fmt::format("cannot listen for browsers on {} port {}: {}", options_.bind, options_.port, what));
    }

    restinio::request_handling_status_t handle_request(const RequestHandle& handle) {
        connections_->busy(handle->remote_endpoint());
        Request request = request_of(handle->header(), handle->body(), handle->remote_endpoint().address());
        const bool head = request.method == "HEAD";
        if (auto answer = admit(request, handle->header().request_target(), options_.prefix, options_.names, access_)) {
            respond(handle, std::move(*answer), head);
        } else if (api_ == nullptr || stopping_) {
            respond(handle, error_answer(503, "internal", "the server is starting or ending"), head);
        } else {
            dispatch(handle, std::move(request), head);
        }
        return restinio::request_accepted();
    }

    void dispatch(const RequestHandle& handle, Request request, bool head) {
        const Api::Route route = Api::route_of(request);
        switch (route) {
            case Api::Route::file:
                return respond(handle,
                               options_.web_dir.empty() ? asset_answer(request.path)
                                                        : folder_answer(options_.web_dir, request.path),
                               head);
            case Api::Route::refused: return respond(handle, api_->answer(request), head);
            case Api::Route::stream: return open_stream(handle, request, head);
            case Api::Route::agent:
                return api_->agent_request(request, [this, handle, head](Answer answer) {
                    asio::post(io_, [this, handle, head, answer = std::move(answer)]() mutable {
                        respond(handle, std::move(answer), head);
                    });
                });
            case Api::Route::quick: return quick_.add(request.client, job_of(handle, request, head));
            case Api::Route::worker: return queries_.add(request.client, job_of(handle, request, head));
            case Api::Route::writing: return writing_.add(request.client, job_of(handle, request, head));
            case Api::Route::session: break;
        }
        // Reading a session from disk can take seconds, so do not do it on the workers that live sessions need.
        const Api::Needs needs = api_->needs(request);
        if (needs.background) return background_.add(request.client, job_of(handle, request, head));
        when_loaded(needs.sessions, needs.extent, [this, client = request.client, job = job_of(handle, request, head)] {
            queries_.add(client, job);
        });
    }

    // Answers the request on a worker.
    RequestQueue::Job job_of(const RequestHandle& handle, const Request& request, bool head) {
        const auto run = [this, handle, head, request] {
            Answer answer;
            try {
                answer = api_->answer(request);
            } catch (const profile::Interrupted&) {
                answer = error_answer(503, "busy",
                                      "this answer takes too long: request a shorter time, one event or one thread");
            } catch (const std::exception& error) {
                spdlog::error("{} {}: {}", request.method, request.path, error.what());
                answer = error_answer(500, "internal", "the answer could not be made");
            }
            asio::post(io_, [this, handle, head, answer = std::move(answer),
                             changed = Api::changes_sessions(request)]() mutable {
                if (changed && answer.status == 200) sessions_changed();
                respond(handle, std::move(answer), head);
            });
        };
        const auto refuse = [this, handle, head] {
            respond(handle,
                    error_answer(503, "busy",
                                 fmt::format("the server has too much to do to answer this within {} s: ask again "
                                             "later",
                                             limits::http_wait.count())),
                    head);
        };
        const auto wanted = [this, handle] { return connections_->is_open(handle->remote_endpoint()); };
        // A request that changes something is completed even if its client has disconnected.
        const bool only_reads = request.method == "GET" || request.method == "HEAD";
        return {run, wanted, refuse, only_reads};
    }

    // Calls `then` on the io thread.
    void when_loaded(std::vector<std::string> sessions, SessionLoader::Extent extent, std::function<void()> then) {
        if (sessions.empty()) return asio::post(io_, std::move(then));
        const std::string first = std::move(sessions.back());
        sessions.pop_back();
        loader_.load(first, extent, [this, sessions = std::move(sessions), extent, then = std::move(then)] {
            when_loaded(sessions, extent, then);
        });
    }

    void respond(const RequestHandle& handle, Answer answer, bool head) {
        server::respond(handle, connections_, std::move(answer), head);
    }

    void open_stream(const RequestHandle& handle, const Request& request, bool head) {
        if (readers_.add(handle, std::string(request.parameter("session")))) return;
        limit_reached(Limit::streams);
        respond(handle, error_answer(503, "internal", "too many readers of the stream"), head);
    }

    void beat() {
        beat_.expires_after(heartbeat);
        beat_.async_wait([this](const std::error_code& error) {
            if (error) return;
            readers_.beat();
            access_.settle();
            beat();
        });
    }

    // Closes connections that send nothing or a request that never ends. Interrupts work that no client waits for or
    // that takes too long.
    void watch_connections() {
        second_.expires_after(std::chrono::seconds(1));
        second_.async_wait([this](const std::error_code& error) {
            if (error) return;
            connections_->close_slow();
            for (RequestQueue* queue : {&queries_, &writing_, &background_}) queue->interrupt();
            watch_connections();
        });
    }

    asio::io_context& io_;
    SessionLoader& loader_;
    const Options options_;
    EventReaders readers_;
    asio::steady_timer beat_, second_;
    Access access_;
    Acceptor& acceptor_;
    const std::shared_ptr<Connections> connections_;
    RequestQueue quick_, queries_, writing_, background_;
    Api* api_ = nullptr;
    std::uint16_t port_ = 0;
    bool stopping_ = false;
};

}  // namespace

Result<std::unique_ptr<HttpServer>> HttpServer::start(asio::io_context& io, const Workers& workers,
                                                      Symbolization& symbols, SessionLoader& loader,
                                                      const Options& options, EventTexts::State state) {
    auto server = std::make_unique<Server>(io, workers, symbols, loader, options, std::move(state));
    TRY(server->open());
    return server;
}

}  // namespace flamewire::server
