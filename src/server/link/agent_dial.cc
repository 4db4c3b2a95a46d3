// Connecting out to listening agents, and again with growing pauses.
#include <asio/connect.hpp>
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <random>

#include "server/link/agent_hub.h"
#include "server/link/agent_hub_state.h"

namespace flamewire::server {
namespace {

constexpr std::chrono::milliseconds first_backoff{1000}, longest_backoff{30'000};
constexpr std::chrono::seconds connect_time{10};

// Between half and all of `pause`, so that many do not come at the same moment.
std::chrono::milliseconds with_jitter(std::chrono::milliseconds pause) {
    static std::minstd_rand random{std::random_device{}()};
    return pause / 2 + std::chrono::milliseconds(
                           static_cast<std::int64_t>(random() % static_cast<std::uint32_t>(pause.count() / 2 + 1)));
}

}  // namespace

void AgentHub::keep_dialling(const std::string& host, std::uint16_t port) {
    auto dial = std::make_shared<Dial>(io_, host, port);
    dial->kept = true;
    dials_.push_back(dial);
    start_dial(dial);
}

void AgentHub::connect(const std::string& host, std::uint16_t port, std::function<void(Result<AgentInfo>)> answer) {
    for (const auto& dial : dials_) {
        if (dial->host != host || dial->port != port) continue;
        const PeerPtr peer = dial->peer.lock();
        if (peer && peer->open && !peer->agent_id.empty()) return answer(agents_[peer->agent_id].info);
        if (dial->answer || (peer && peer->open))
            return answer(fail(ErrorCode::busy, fmt::format("{}:{} is being dialled already", host, port)));
        // Waiting for its next attempt: this is it.
        dial->answer = std::move(answer);
        dial->timer.cancel();
        return start_dial(dial);
    }
    auto dial = std::make_shared<Dial>(io_, host, port);
    dial->answer = std::move(answer);
    dials_.push_back(dial);
    start_dial(dial);
}

void AgentHub::start_dial(const std::shared_ptr<Dial>& dial) {
    auto socket = std::make_shared<asio::ip::tcp::socket>(io_);
    auto expired = std::make_shared<bool>(false);
    dial->timer.expires_after(connect_time);
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
            if (stopping_) return;
            if (error) return dial_failed(dial, error.message());
            if (*expired) return dial_failed(dial, "no answer in time");
            asio::async_connect(
                *socket, endpoints,
                [this, dial, socket, expired](const std::error_code& failed, const asio::ip::tcp::endpoint&) {
                    if (stopping_) return;
                    dial->timer.cancel();
                    if (failed) return dial_failed(dial, *expired ? "no answer in time" : failed.message());
                    dial->peer = adopt(std::move(*socket), dial);
                });
        });
}

void AgentHub::dial_failed(const std::shared_ptr<Dial>& dial, const std::string& reason) {
    dial->timer.cancel();
    if (auto answer = std::exchange(dial->answer, nullptr))
        answer(fail(ErrorCode::closed,
                    fmt::format("cannot connect to an agent at {}:{}: {}", dial->host, dial->port, reason)));
    if (!dial->kept) {
        std::erase(dials_, dial);
        return;
    }
    // Said once for each time that it goes away, not for each attempt.
    if (dial->backoff == first_backoff)
        spdlog::info("agent at {}:{}: {}; trying again", dial->host, dial->port, reason);
    dial->timer.expires_after(with_jitter(dial->backoff));
    dial->backoff = std::min(dial->backoff * 2, longest_backoff);
    dial->timer.async_wait([this, dial](const std::error_code& error) {
        if (!error && !stopping_) start_dial(dial);
    });
}

}  // namespace flamewire::server
