#include "server/link/agent_dialer.h"

#include <asio/connect.hpp>
#include <asio/post.hpp>
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <random>

#include "server/limits.h"

namespace flamewire::server {
namespace {

constexpr std::chrono::milliseconds longest_backoff{30'000};

// A random time between half of `pause` and all of it, so that many retries do not coincide.
std::chrono::milliseconds with_jitter(std::chrono::milliseconds pause) {
    static std::minstd_rand random{std::random_device{}()};
    return pause / 2 + std::chrono::milliseconds(
                           static_cast<std::int64_t>(random() % static_cast<std::uint32_t>(pause.count() / 2 + 1)));
}

// Explains why a connection to a dialed address ended.
std::string disconnect_reason(const AgentConnection& connection, const std::string& reason) {
    if (connection.wrong_key())
        return "it does not take this pairing code: give the one that it printed when it started";
    if (connection.silent())
        return fmt::format(
            "it closed the connection unexpectedly ({}): it may not be flamewire-agent, or it is too busy", reason);
    return "the connection ended: " + reason;
}

}  // namespace

Result<bool> AgentDialer::keep_dialing(const std::string& host, std::uint16_t port) {
    if (const DialPtr known = find(host, port)) {
        known->kept = true;
        if (known->waiting) start(known);
        return true;
    }
    const DialPtr dial = TRY(add(host, port));
    dial->kept = true;
    start(dial);
    return true;
}

AgentDialer::DialPtr AgentDialer::find(const std::string& host, std::uint16_t port) const {
    const auto found =
        std::ranges::find_if(dials_, [&](const DialPtr& dial) { return dial->host == host && dial->port == port; });
    return found == dials_.end() ? nullptr : *found;
}

Result<AgentDialer::DialPtr> AgentDialer::add(const std::string& host, std::uint16_t port) {
    if (dials_.size() >= limits::dials) {
        limit_reached(Limit::dials);
        return fail(ErrorCode::busy,
                    fmt::format("the server is already connecting to {} addresses: cancel one first", limits::dials));
    }
    const auto now = Clock::now();
    while (!begun_.empty() && now - begun_.front() > limits::new_dials_window) begun_.pop_front();
    if (begun_.size() >= limits::new_dials) {
        limit_reached(Limit::new_dials);
        return fail(ErrorCode::busy,
                    fmt::format("this server connects to at most {} new addresses within {} s, so that "
                                "nobody scans a network with it: wait a moment",
                                limits::new_dials, limits::new_dials_window.count()));
    }
    begun_.push_back(now);
    return dials_.emplace_back(std::make_shared<Dial>(threads_.io, host, port));
}

bool AgentDialer::cancel(const std::string& host, std::uint16_t port) {
    const DialPtr dial = find(host, port);
    if (!dial) return false;
    std::erase(dials_, dial);
    dial->kept = false;
    dial->cancelled = true;
    dial->timer.cancel();
    if (const auto socket = dial->attempt.lock()) {
        std::error_code ignored;
        socket->close(ignored);
    }
    if (auto answer = std::exchange(dial->answer, nullptr))
        answer(fail(ErrorCode::closed, fmt::format("connecting to {}:{} was cancelled", host, port)));
    if (dial->connection) dial->connection->close("disconnected by a person at the page");
    return true;
}

std::vector<DialInfo> AgentDialer::list() const {
    std::vector<DialInfo> all;
    for (const DialPtr& dial : dials_) {
        DialInfo info{.host = dial->host, .port = dial->port, .agent = {}, .problem = dial->problem};
        info.attempts = dial->attempts;
        if (!dial->agent.empty()) {
            info.state = DialInfo::State::connected;
            info.agent = dial->agent;
            info.problem.clear();
        } else if (dial->waiting) {
            info.state = DialInfo::State::waiting;
            const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(dial->next_at - Clock::now());
            info.next_in_ms = static_cast<std::uint64_t>(std::max<std::int64_t>(0, left.count()));
        }
        all.push_back(std::move(info));
    }
    return all;
}

void AgentDialer::connect(const std::string& host, std::uint16_t port, std::function<void(Result<AgentInfo>)> answer) {
    if (const DialPtr dial = find(host, port)) {
        if (!dial->agent.empty()) return answer(*registry_.snapshot(dial->agent));
        if (dial->answer || dial->connection)
            return answer(fail(ErrorCode::busy, fmt::format("the server is already connecting to {}:{}", host, port)));
        dial->answer = std::move(answer);
        if (!dial->waiting) return;  // the attempt under way answers
        dial->timer.cancel();
        return start(dial);
    }
    const auto dial = add(host, port);
    if (!dial) return answer(std::unexpected(dial.error()));
    (*dial)->answer = std::move(answer);
    start(*dial);
}

void AgentDialer::start(const DialPtr& dial) {
    auto socket = std::make_shared<asio::ip::tcp::socket>(threads_.io);
    auto expired = std::make_shared<bool>(false);
    dial->waiting = false;
    dial->attempt = socket;
    ++dial->attempts;
    dial->timer.expires_after(limits::dial_time);
    dial->timer.async_wait([socket, expired](const std::error_code& error) {
        if (error) return;
        *expired = true;
        std::error_code ignored;
        socket->close(ignored);
    });
    resolver_.async_resolve(
        dial->host, std::to_string(dial->port),
        [this, dial, socket, expired](const std::error_code& error,
                                      const asio::ip::tcp::resolver::results_type& endpoints) {
            if (stopping_ || dial->cancelled) return;
            if (error || *expired) return failed(dial, explain_dial(dial->host, dial->port, error, *expired));
            asio::async_connect(
                *socket, endpoints,
                [this, dial, socket, expired](const std::error_code& refused, const asio::ip::tcp::endpoint&) {
                    if (stopping_ || dial->cancelled) return;
                    dial->timer.cancel();
                    if (refused) return failed(dial, explain_dial(dial->host, dial->port, refused, *expired));
                    begin_connection(dial, std::move(*socket));
                });
        });
}

void AgentDialer::pair(const std::string& host, std::uint16_t port, const secure::PairingKey& key,
                       std::function<void(Result<bool>)> done) {
    const std::string address = fmt::format("{}:{}", host, port);
    threads_.run(
        [this, address, key] {
            // Keep the code that worked before until the new one has worked.
            const auto before = pairing_.keys.of_address(address);
            const bool try_first = before && *before != key && (before->id == key.id || !pairing_.keys.has(key.id));
            return std::pair(try_first, try_first ? Result<bool>(true) : pairing_.keys.put(address, key));
        },
        [this, address, key, done = std::move(done)](std::pair<bool, Result<bool>> result) {
            if (result.first) offered_keys_[address] = key;
            done(std::move(result.second));
        });
}

void AgentDialer::begin_connection(const DialPtr& dial, asio::ip::tcp::socket socket) {
    const std::string address = dial->address();
    const auto offered = offered_keys_.find(address);
    dial->offered_key = offered == offered_keys_.end() ? std::nullopt : std::optional(offered->second);
    dial->agent.clear();
    const auto key = dial->offered_key ? dial->offered_key : pairing_.keys.of_address(address);
    if (!key) {
        if (!pairing_.insecure)
            return failed(dial,
                          "a pairing code is needed: give the code that the agent printed "
                          "when it started, or start both with --insecure");
        dial->connection = connected_(dial, std::move(socket), secure::Carrier::plain());
        return;
    }
    auto carrier = secure::Carrier::dialled(*key);
    if (!carrier) return failed(dial, carrier.error().message);
    dial->connection = connected_(dial, std::move(socket), std::move(*carrier));
}

void AgentDialer::failed(const DialPtr& dial, const std::string& reason) {
    if (dial->cancelled) return;
    dial->timer.cancel();
    dial->problem = reason;
    if (auto answer = std::exchange(dial->answer, nullptr))
        answer(fail(ErrorCode::closed,
                    fmt::format("cannot connect to an agent at {}:{}: {}", dial->host, dial->port, reason)));
    if (!dial->kept) {
        std::erase(dials_, dial);
        return;
    }
    // Log once per outage, not once per attempt.
    if (dial->backoff == Dial::first_backoff)
        spdlog::info("agent at {}:{}: {}; trying again", dial->host, dial->port, reason);
    const auto pause = with_jitter(dial->backoff);
    dial->waiting = true;
    dial->next_at = Clock::now() + pause;
    dial->timer.expires_after(pause);
    dial->backoff = std::min(dial->backoff * 2, longest_backoff);
    dial->timer.async_wait([this, dial](const std::error_code& error) {
        if (!error && !stopping_ && dial->waiting) start(dial);
    });
}

void AgentDialer::succeeded(Dial& dial, const AgentInfo& agent) {
    store_offered_key(dial);
    dial.backoff = Dial::first_backoff;
    dial.kept = true;
    dial.attempts = 0;
    dial.problem.clear();
    dial.agent = agent.id;
    if (auto answer = std::exchange(dial.answer, nullptr)) answer(agent);
}

// A listening agent's new code has worked: it replaces the old one.
void AgentDialer::store_offered_key(Dial& dial) {
    if (!dial.offered_key) return;
    const std::string address = dial.address();
    offered_keys_.erase(address);
    asio::post(threads_.pool, [this, address, key = *std::exchange(dial.offered_key, std::nullopt)] {
        if (const auto kept = pairing_.keys.put(address, key); !kept)
            spdlog::warn("the pairing code of {} is not kept: {}", address, kept.error().message);
    });
}

void AgentDialer::ended(const DialPtr& dial, const AgentConnection& connection, const std::string& reason) {
    if (connection.wrong_key()) offered_keys_.erase(dial->address());
    if (dial->connection.get() == &connection) {
        dial->connection.reset();
        dial->agent.clear();
    }
    if (!stopping_) failed(dial, disconnect_reason(connection, reason));
}

void AgentDialer::stop() {
    stopping_ = true;
    resolver_.cancel();
    for (const DialPtr& dial : dials_) dial->timer.cancel();
}

}  // namespace flamewire::server
