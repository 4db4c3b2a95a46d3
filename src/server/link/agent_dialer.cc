// Dials listening agents, and retries with growing pauses.
#include <asio/connect.hpp>
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <random>

#include "server/limits.h"
#include "server/link/agent_hub.h"
#include "server/link/agent_peer.h"

namespace flamewire::server {
namespace {

constexpr std::chrono::milliseconds first_backoff{1000}, longest_backoff{30'000};

// A random time between half of `pause` and all of it, so that many retries do not coincide.
std::chrono::milliseconds with_jitter(std::chrono::milliseconds pause) {
    static std::minstd_rand random{std::random_device{}()};
    return pause / 2 + std::chrono::milliseconds(
                           static_cast<std::int64_t>(random() % static_cast<std::uint32_t>(pause.count() / 2 + 1)));
}

}  // namespace

Result<bool> AgentHub::keep_dialing(const std::string& host, std::uint16_t port) {
    for (const auto& known : dials_) {
        if (known->host != host || known->port != port) continue;
        known->kept = true;
        if (known->waiting) start_dial(known);
        return true;
    }
    const auto dial = TRY(new_dial(host, port));
    dial->kept = true;
    start_dial(dial);
    return true;
}

Result<std::shared_ptr<Dial>> AgentHub::new_dial(const std::string& host, std::uint16_t port) {
    if (dials_.size() >= limits::dials) {
        limit_reached(Limit::dials);
        return fail(ErrorCode::busy,
                    fmt::format("the server is already connecting to {} addresses: cancel one first", limits::dials));
    }
    const auto now = Clock::now();
    while (!dials_begun_.empty() && now - dials_begun_.front() > limits::new_dials_window) dials_begun_.pop_front();
    if (dials_begun_.size() >= limits::new_dials) {
        limit_reached(Limit::new_dials);
        return fail(ErrorCode::busy,
                    fmt::format("this server connects to at most {} new addresses within {} s, so that "
                                "nobody scans a network with it: wait a moment",
                                limits::new_dials, limits::new_dials_window.count()));
    }
    dials_begun_.push_back(now);
    return dials_.emplace_back(std::make_shared<Dial>(threads_.io, host, port));
}

bool AgentHub::cancel_dial(const std::string& host, std::uint16_t port) {
    const auto found =
        std::ranges::find_if(dials_, [&](const auto& dial) { return dial->host == host && dial->port == port; });
    if (found == dials_.end()) return false;
    const auto dial = std::move(*found);
    dials_.erase(found);
    dial->kept = false;
    dial->cancelled = true;
    dial->timer.cancel();
    if (const auto socket = dial->attempt.lock()) {
        std::error_code ignored;
        socket->close(ignored);
    }
    if (auto answer = std::exchange(dial->answer, nullptr))
        answer(fail(ErrorCode::closed, fmt::format("connecting to {}:{} was cancelled", host, port)));
    if (const PeerPtr peer = dial->peer.lock(); peer && peer->open)
        peer->connection->close("disconnected by a person at the page");
    return true;
}

std::vector<DialInfo> AgentHub::dials() const {
    std::vector<DialInfo> all;
    for (const auto& dial : dials_) {
        DialInfo info{.host = dial->host, .port = dial->port, .agent = {}, .problem = dial->problem};
        info.attempts = dial->attempts;
        const PeerPtr peer = dial->peer.lock();
        if (peer && peer->open && !peer->agent_id.empty()) {
            info.state = DialInfo::State::connected;
            info.agent = peer->agent_id;
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

void AgentHub::connect(const std::string& host, std::uint16_t port, std::function<void(Result<AgentInfo>)> answer) {
    for (const auto& dial : dials_) {
        if (dial->host != host || dial->port != port) continue;
        const PeerPtr peer = dial->peer.lock();
        if (peer && peer->open && !peer->agent_id.empty()) return answer(*registry_.snapshot(peer->agent_id));
        if (dial->answer || (peer && peer->open))
            return answer(fail(ErrorCode::busy, fmt::format("the server is already connecting to {}:{}", host, port)));
        // The dial waits for its next attempt: start that attempt now.
        dial->answer = std::move(answer);
        dial->timer.cancel();
        return start_dial(dial);
    }
    const auto dial = new_dial(host, port);
    if (!dial) return answer(std::unexpected(dial.error()));
    (*dial)->answer = std::move(answer);
    start_dial(*dial);
}

void AgentHub::start_dial(const std::shared_ptr<Dial>& dial) {
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
            if (error || *expired) return dial_failed(dial, explain_dial(dial->host, dial->port, error, *expired));
            asio::async_connect(
                *socket, endpoints,
                [this, dial, socket, expired](const std::error_code& failed, const asio::ip::tcp::endpoint&) {
                    if (stopping_ || dial->cancelled) return;
                    dial->timer.cancel();
                    if (failed) return dial_failed(dial, explain_dial(dial->host, dial->port, failed, *expired));
                    add_dialed(dial, std::move(*socket));
                });
        });
}

void AgentHub::pair(const std::string& host, std::uint16_t port, const secure::PairingKey& key,
                    std::function<void(Result<bool>)> done) {
    asio::post(threads_.pool, [this, address = fmt::format("{}:{}", host, port), key, done = std::move(done)] {
        // Keep the code that worked before until the new one has worked.
        const auto before = pairing_.keys.of_address(address);
        const bool try_first = before && *before != key && (before->id == key.id || !pairing_.keys.has(key.id));
        const Result<bool> kept = try_first ? Result<bool>(true) : pairing_.keys.put(address, key);
        asio::post(threads_.io, [this, try_first, address, key, done, kept] {
            if (try_first) offered_keys_[address] = key;
            done(kept);
        });
    });
}

void AgentHub::add_dialed(const std::shared_ptr<Dial>& dial, asio::ip::tcp::socket socket) {
    const std::string address = fmt::format("{}:{}", dial->host, dial->port);
    const auto offered = offered_keys_.find(address);
    dial->offered_key = offered == offered_keys_.end() ? std::nullopt : std::optional(offered->second);
    const auto key = dial->offered_key ? dial->offered_key : pairing_.keys.of_address(address);
    if (!key) {
        if (!pairing_.insecure)
            return dial_failed(dial,
                               "a pairing code is needed: give the code that the agent printed "
                               "when it started, or start both with --insecure");
        dial->peer = add_peer(std::move(socket), dial, secure::Carrier::plain());
        return;
    }
    auto carrier = secure::Carrier::dialled(*key);
    if (!carrier) return dial_failed(dial, carrier.error().message);
    dial->peer = add_peer(std::move(socket), dial, std::move(*carrier));
}

void AgentHub::dial_failed(const std::shared_ptr<Dial>& dial, const std::string& reason) {
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
    if (dial->backoff == first_backoff)
        spdlog::info("agent at {}:{}: {}; trying again", dial->host, dial->port, reason);
    const auto pause = with_jitter(dial->backoff);
    dial->waiting = true;
    dial->next_at = Clock::now() + pause;
    dial->timer.expires_after(pause);
    dial->backoff = std::min(dial->backoff * 2, longest_backoff);
    dial->timer.async_wait([this, dial](const std::error_code& error) {
        if (!error && !stopping_ && dial->waiting) start_dial(dial);
    });
}

}  // namespace flamewire::server
