#include "agent/link/dialer.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>

#include "agent/log.h"
#include "base/clock.h"

namespace flamewire::agent {
namespace {

constexpr std::uint32_t longest_pause = 30;  // multiple of the first pause: 1 s -> 30 s
constexpr std::chrono::seconds connect_limit{10};

}  // namespace

Dialer::Dialer(asio::io_context& io, std::string host, std::uint16_t port, std::uint32_t retry_ms, Connected connected)
    : io_(io),
      host_(std::move(host)),
      port_(port),
      first_pause_ms_(retry_ms),
      pause_ms_(retry_ms),
      connected_(std::move(connected)),
      socket_(io),
      timer_(io),
      // Agents that lose the same server must not reconnect at the same time. Clock and pid differ enough for that.
      random_(static_cast<std::uint32_t>(monotonic_ns() / 1000 ^ static_cast<std::uint64_t>(::getpid()) << 16)) {}

void Dialer::dial() {
    if (stopped_) return;
    last_error_ = "it has no address";
    resolution_.emplace(io_, host_, port_, [this](Result<Endpoints> found) {
        if (!found) return failed(found.error().message);
        endpoints_ = std::move(*found);
        next_endpoint_ = 0;
        try_next_endpoint();
    });
}

void Dialer::try_next_endpoint() {
    if (stopped_) return;
    if (next_endpoint_ == endpoints_.size()) return failed(last_error_);
    const asio::ip::tcp::endpoint endpoint = endpoints_[next_endpoint_++];
    socket_ = asio::ip::tcp::socket(io_);
    timer_.expires_after(connect_limit);
    timer_.async_wait([this](asio::error_code error) {
        asio::error_code ignored;
        if (!error) socket_.close(ignored);  // ends the attempt with operation_aborted
    });
    socket_.async_connect(endpoint, [this](asio::error_code error) {
        timer_.cancel();
        if (stopped_) return;
        if (!error) return connected_(std::move(socket_));
        last_error_ = error == asio::error::operation_aborted
                          ? "no answer within 10 seconds: check the address, and that no firewall is in between"
                      : error == asio::error::connection_refused
                          ? "it refuses connections: run flamewire-server there, or check --port"
                      : error == asio::error::host_unreachable || error == asio::error::network_unreachable
                          ? "no route to it: check the network and the address"
                          : error.message();
        try_next_endpoint();
    });
}

void Dialer::succeeded() {
    pause_ms_ = first_pause_ms_;
    failure_logged_ = false;
}

void Dialer::again(bool useful, const std::string& reason) {
    if (!useful) return failed(reason);
    succeeded();
    pause();
}

void Dialer::failed(const std::string& reason) {
    if (stopped_) return;
    if (!failure_logged_) log("no server at {}:{} ({}); trying again until there is one", host_, port_, reason);
    failure_logged_ = true;
    pause();
}

void Dialer::pause() {
    if (stopped_) return;
    timer_.expires_after(std::chrono::milliseconds(next_pause_ms()));
    timer_.async_wait([this](asio::error_code error) {
        if (!error) dial();
    });
}

// Returns 50 to 100 % of the pause, then doubles it.
std::uint32_t Dialer::next_pause_ms() {
    const std::uint32_t pause = pause_ms_ / 2 + static_cast<std::uint32_t>(random_() % (pause_ms_ / 2 + 1));
    pause_ms_ = std::min(pause_ms_ * 2, first_pause_ms_ * longest_pause);
    return pause;
}

void Dialer::stop() {
    stopped_ = true;
    resolution_.reset();
    timer_.cancel();
    asio::error_code ignored;
    socket_.close(ignored);
}

}  // namespace flamewire::agent
