// Threads: the caller's thread runs the io_context (agents, HTTP, event stream). One pool ingests batches, and three
// answer requests. One thread resolves symbols and loads sessions, one imports files, and one makes sessions durable.
// docs/contributing/server.md has the table.
#include "server/server.h"

#include <asio/io_context.hpp>
#include <asio/signal_set.hpp>
#include <asio/steady_timer.hpp>
#include <asio/thread_pool.hpp>
#include <fmt/format.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>

#include <chrono>
#include <cstdio>
#include <ctime>
#include <memory>
#include <string>

#include "base/descriptor_table.h"
#include "base/file.h"
#include "base/utf8.h"
#include "server/http/access.h"
#include "server/http/assets.h"
#include "server/http/http_server.h"
#include "server/link/agent_hub.h"
#include "server/pairing.h"
#include "server/session/debug_fetch.h"
#include "server/session/imports.h"
#include "server/session/prune.h"
#include "server/start_text.h"
#include "symbol/symbolizer.h"

namespace flamewire::server {
namespace {

constexpr unsigned ingest_workers = 2;
// Agents, browsers and open files. More descriptors are possible, but slower.
constexpr std::size_t expected_descriptors = 4'096;
constexpr std::chrono::seconds prune_interval{10};

class Server {
public:
    Server(const Options& options, std::unique_ptr<Catalog> catalog, KeyRing keys)
        : options_(options),
          keys_(std::move(keys)),
          settings_(options.settings),
          symbolizer_(symbol_config(options.settings)),
          sources_(source_config(options.settings)),
          catalog_(std::move(catalog)),
          symbols_(symbolizer_, [this](const std::shared_ptr<Session>& session) { session_symbolized(session); }),
          loader_(*catalog_, symbols_, [this](const std::shared_ptr<Session>& session) { session_changed(session); }),
          disk_(*catalog_,
                [this](std::shared_ptr<Session> session, std::uint64_t seq) { hub_.synced(std::move(session), seq); }),
          ingest_(*catalog_, disk_, symbols_),
          modules_(options.data_dir + "/modules"),
          imports_(*catalog_, symbols_, options_.import_memory, [this] { sessions_changed(); }),
          uploads_(options.data_dir + "/uploads"),
          pruner_(*catalog_, options.keep),
          hub_(io_, ingest_pool_, *catalog_, ingest_, {keys_, options.insecure},
               {options.fetch_modules ? &modules_ : nullptr, options.fetch_cap_mib << 20},
               {options.accept_perflens, options.perflens_token},
               {.agent_changed = [this](const AgentInfo& agent) { agent_changed(agent); },
                .session_changed = [this](const std::shared_ptr<Session>& session) { session_changed(session); },
                .sessions_changed =
                    [this] {
                        sessions_changed();
                        prune();
                    },
                .module_arrived = [this](const symbol::ModuleIdentity& module) { module_arrived(module); },
                .turned_away =
                    [this] {
                        if (http_) http_->status_changed();
                    }}) {}

    Result<bool> start() {
        const std::uint16_t port = TRY(hub_.listen(options_.bind, options_.port));
        const HttpServer::Options http = TRY(http_options());
        http_ = TRY(HttpServer::start(io_, {quick_, queries_, writing_}, symbols_, loader_, http, stream_state()));
        ServerFacts facts;
        facts.agent_bind = options_.bind;
        facts.agent_port = port;
        facts.http_url = http_url(options_, http_->port());
        facts.target_command = target_command(options_, port);
        facts.insecure = options_.insecure;
        facts.token_required = !http_token_.empty();
        facts.data_dir = options_.data_dir;
        facts.page = {asset_bytes("app.js"), asset_bytes("app.css")};
        facts.browse_roots = browse_roots(options_.browse_roots);
        facts.keep = options_.keep;
        print_start(options_, facts, http_token_, keys_);
        if (!options_.settings.debuginfod.empty())
            debug_fetch_ = std::make_unique<DebugFetch>(
                options_.settings.debuginfod_directory, options_.settings.debuginfod_cache_bytes,
                DebugFetch::Events{
                    .changed = [this](const std::shared_ptr<Session>& session) { session_changed(session); },
                    .arrived = [this](const symbol::ModuleIdentity& module) { module_arrived(module); }});
        api_ = std::make_unique<Api>(ApiParts{*catalog_, symbols_, symbolizer_, sources_, debug_fetch_.get(), settings_,
                                              uploads_, imports_, keys_, agent_calls(), std::move(facts)});
        http_->serve(*api_);
        for (const AgentAddress& agent : options_.agents) TRY(hub_.dialer().keep_dialing(agent.host, agent.port));
        // Last: a server that fails to start must not have imports under way.
        for (const std::string& file : options_.imports) begin_import(file);
        if (options_.keep.any()) prune_periodically();
        return true;
    }

    void run() {
        asio::signal_set signals(io_, SIGINT, SIGTERM);
        signals.async_wait([this](const std::error_code& error, int) {
            if (error) return;
            spdlog::info("ending");
            hub_.stop();
            http_->stop();
            prune_timer_.cancel();
            ended_ = true;
        });
        // io_.run() alone would return too early: closed connections still have callbacks to run after the signal.
        while (!ended_) io_.run_one();
        // Finish what the workers are processing and make it durable. Their callbacks into io_ still find everything
        // alive.
        ingest_pool_.join();
        quick_.join();
        queries_.join();
        writing_.join();
        imports_.stop();
        symbols_.stop();
        debug_fetch_.reset();
        disk_.stop();
        io_.poll();
    }

private:
    // Empty with --http-open.
    [[nodiscard]] Result<std::string> page_token() const {
        if (options_.http_open) return std::string{};
        if (!options_.http_token_file.empty()) return read_token(options_.http_token_file);
        const std::string path = kept_token_path(options_);
        if (file_status(path)) return read_token(path);
        std::string token = TRY(random_token());
        // A full disk must not prevent access to the sessions on it. The exception is a journal: the token is never
        // printed there, so it must be in the file.
        if (const auto kept = replace_file(path, as_bytes_view(token + "\n")); !kept) {
            if (into_journal()) return std::unexpected(kept.error());
            fmt::print(stderr, "the page's token is for this run only: {}\n", kept.error().message);
        }
        return token;
    }

    Result<HttpServer::Options> http_options() {
        HttpServer::Options http{.bind = options_.http_bind,
                                 .port = options_.http_port,
                                 .names = options_.http_names,
                                 .prefix = options_.http_prefix,
                                 .token = {},
                                 .certificate_file = options_.http_cert,
                                 .key_file = options_.http_key,
                                 .web_dir = options_.web_dir};
        http.token = http_token_ = TRY(page_token());
        return http;
    }

    EventTexts::State stream_state() {
        EventTexts::State state;
        state.status = [this] { return api_->status().body; };
        state.session = [this](const std::string& id) -> std::optional<SessionInfo> {
            const auto session = catalog_->opened(id);
            return session ? std::optional(session->info()) : std::nullopt;
        };
        state.agent = [this](const std::string& id) { return hub_.agent(id); };
        state.live = [this] {
            std::vector<std::string> ids;
            for (const auto& session : catalog_->live()) ids.push_back(session->id());
            return ids;
        };
        state.agents = [this] {
            std::vector<std::string> ids;
            for (const AgentPtr& agent : hub_.agents()) ids.push_back(agent->id);
            return ids;
        };
        return state;
    }

    AgentCalls agent_calls() {
        AgentCalls agents;
        agents.all = [this] { return hub_.agents(); };
        agents.connect = [this](const std::string& host, std::uint16_t port,
                                std::function<void(Result<AgentInfo>)> answer) {
            hub_.dialer().connect(host, port, std::move(answer));
        };
        agents.keep_dialing = [this](const std::string& host, std::uint16_t port) {
            return hub_.dialer().keep_dialing(host, port);
        };
        agents.pair = [this](const std::string& host, std::uint16_t port, const secure::PairingKey& key,
                             std::function<void(Result<bool>)> done) {
            hub_.dialer().pair(host, port, key, std::move(done));
        };
        agents.cancel_dial = [this](const std::string& host, std::uint16_t port) {
            return hub_.dialer().cancel(host, port);
        };
        agents.dials = [this] { return hub_.dialer().list(); };
        agents.turned_away = [this] { return hub_.turned_away(); };
        agents.command = [this](const std::string& agent, const std::string& command, const rapidjson::Value& args,
                                std::chrono::milliseconds timeout, const Reply& reply) {
            hub_.commands().send(agent, command, args, timeout, [reply](const CommandAnswer& answer) {
                switch (answer.kind) {
                    case CommandAnswer::Kind::reply: return reply(json_answer(answer.text));
                    case CommandAnswer::Kind::unreachable:
                        return reply(error_answer(502, "agent_unreachable", answer.text));
                    case CommandAnswer::Kind::timeout: return reply(error_answer(504, "agent_timeout", answer.text));
                }
            });
        };
        return agents;
    }

    void begin_import(const std::string& file) {
        imports_.begin(file, file, [](const Imports::Import& import) {
            if (import.state == Imports::State::failed)
                spdlog::error("{} was not imported: {}", import.name, import.problem);
            else if (import.state == Imports::State::cancelled)
                spdlog::info("the import of {} was cancelled", import.name);
            else
                spdlog::info("{} is session {}", import.name, import.session);
        });
    }

    void prune() {
        if (!options_.keep.any()) return;
        symbols_.post([this] {
            if (pruner_.run() > 0) sessions_changed();
        });
    }
    // Runs now and then periodically: sessions end, grow and age.
    void prune_periodically() {
        prune();
        prune_timer_.expires_after(prune_interval);
        prune_timer_.async_wait([this](const std::error_code& error) {
            if (!error) prune_periodically();
        });
    }

    // Sessions that waited for symbols of this module resolve them again.
    void module_arrived(const symbol::ModuleIdentity& module) {
        symbolizer_.forget(module);
        for (const auto& session : catalog_->all_loaded()) symbols_.schedule(session);
    }

    // Some of its addresses are resolved now. Debug info for the others may be on a debuginfod server.
    void session_symbolized(const std::shared_ptr<Session>& session) {
        session_changed(session);
        if (debug_fetch_) debug_fetch_->request(session);
    }

    // From any thread.
    void session_changed(const std::shared_ptr<Session>& session) {
        asio::post(io_, [this, id = session->id()] {
            if (http_) http_->session_changed(id);
        });
    }
    void sessions_changed() {
        asio::post(io_, [this] {
            if (!http_) return;
            http_->sessions_changed();
            http_->status_changed();
        });
    }
    void agent_changed(const AgentInfo& agent) {
        asio::post(io_, [this, id = agent.id] {
            if (!http_) return;
            http_->agent_changed(id);
            http_->status_changed();
        });
    }

    const Options options_;
    KeyRing keys_;
    asio::io_context io_{1};
    asio::thread_pool ingest_pool_{ingest_workers}, quick_{HttpServer::quick_workers},
        queries_{HttpServer::query_workers}, writing_{HttpServer::writing_workers};
    Settings settings_;
    symbol::Symbolizer symbolizer_;
    SourceLookup sources_;
    std::unique_ptr<Catalog> catalog_;
    Symbolization symbols_;
    SessionLoader loader_;
    DiskSync disk_;
    Ingest ingest_;
    std::unique_ptr<HttpServer> http_;
    std::unique_ptr<Api> api_;
    ModuleStore modules_;
    Imports imports_;
    UploadStore uploads_;
    Pruner pruner_;
    asio::steady_timer prune_timer_{io_};
    std::unique_ptr<DebugFetch> debug_fetch_;  // only with --debuginfod
    AgentHub hub_;
    std::string http_token_;  // of the page; empty: --http-open
    bool ended_ = false;
};

}  // namespace

namespace {

// The text of a log line, made printable: data from agents and browsers can contain terminal escape sequences.
class PrintableMessage final : public spdlog::custom_flag_formatter {
public:
    void format(const spdlog::details::log_msg& message, const std::tm& /*time*/, spdlog::memory_buf_t& line) override {
        const std::string text = printable({message.payload.data(), message.payload.size()});
        line.append(text.data(), text.data() + text.size());
    }
    [[nodiscard]] std::unique_ptr<custom_flag_formatter> clone() const override {
        return std::make_unique<PrintableMessage>();
    }
};

}  // namespace

int run(const Options& options) {
    spdlog::set_default_logger(spdlog::stderr_color_mt("flamewire"));
    auto lines = std::make_unique<spdlog::pattern_formatter>();
    lines->add_flag<PrintableMessage>('*').set_pattern("%Y-%m-%d %H:%M:%S.%e %l: %*");
    spdlog::set_formatter(std::move(lines));
    spdlog::set_level(options.verbose ? spdlog::level::debug : spdlog::level::info);
    prepare_descriptors(expected_descriptors);
    // Profiles reveal programs, command lines and sources, so only the owner may read the files.
    ::umask(077);
    auto catalog = Catalog::open(options.data_dir, {{options.max_samples, options.table_memory}, options.session_size},
                                 options.tags);
    if (!catalog) {
        fmt::print(stderr, "flamewire-server: {}\n", catalog.error().message);
        return 1;
    }
    auto keys = KeyRing::open(keys_path(options.data_dir));
    if (!keys) {
        fmt::print(stderr, "flamewire-server: {}\n", keys.error().message);
        return 1;
    }
    Options chosen = options;
    SettingsValues& symbols = chosen.settings;
    // These change the process environment, so set them before any thread starts. A server without debuginfod is better
    // than none.
    if (!symbols.debuginfod.empty())
        if (const auto ready = symbol::prepare_debuginfod(symbols.debuginfod, symbols.debuginfod_directory,
                                                          symbols.debuginfod_cache_bytes);
            !ready) {
            chosen.remarks.push_back(fmt::format("--debuginfod: {}", ready.error().message));
            symbols.debuginfod.clear();
        }
    Server server(chosen, std::move(*catalog), std::move(*keys));
    if (auto started = server.start(); !started) {
        fmt::print(stderr, "flamewire-server: {}\n", started.error().message);
        return 1;
    }
    server.run();
    return 0;
}

}  // namespace flamewire::server
