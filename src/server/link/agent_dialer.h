// Dials listening agents, and retries with growing pauses. Keeps the new pairing codes of listening agents until they
// have worked. Everything runs on the io thread; the key ring is written on the pool.
#pragma once

#include <asio/ip/tcp.hpp>

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "secure/carrier.h"
#include "secure/pairing_key.h"
#include "server/link/agent_connection.h"
#include "server/link/agent_info.h"
#include "server/link/agent_registry.h"
#include "server/link/dial.h"
#include "server/link/dial_info.h"
#include "server/link/key_ring.h"
#include "server/link/link_threads.h"

namespace flamewire::server {

class AgentDialer {
public:
    using DialPtr = std::shared_ptr<Dial>;
    // Starts the connection of a socket that is connected. Its end is reported with ended().
    using Connected =
        std::function<std::shared_ptr<AgentConnection>(const DialPtr&, asio::ip::tcp::socket, secure::Carrier)>;

    AgentDialer(const LinkThreads& threads, PairingPolicy pairing, const AgentRegistry& registry, Connected connected)
        : threads_(threads),
          pairing_(pairing),
          registry_(registry),
          connected_(std::move(connected)),
          resolver_(threads.io) {}

    // Keeps a connection to a listening agent until it is canceled, with a backoff of 1 to 30 s. A dial that waits for
    // its next attempt starts at once. busy: there are too many.
    Result<bool> keep_dialing(const std::string& host, std::uint16_t port);
    // Dials once. If the attempt succeeds, the connection is kept. The answer names the agent.
    void connect(const std::string& host, std::uint16_t port, std::function<void(Result<AgentInfo>)> answer);
    // Sets the pairing code of a listening agent and stores it with the keys. The next attempt uses it. `done` runs on
    // the io thread.
    void pair(const std::string& host, std::uint16_t port, const secure::PairingKey& key,
              std::function<void(Result<bool>)> done);
    // Stops dialing and closes the connection that the dial made. False if there is no such address.
    bool cancel(const std::string& host, std::uint16_t port);
    [[nodiscard]] std::vector<DialInfo> list() const;

    // The connection of the dial has sent its hello.
    void succeeded(Dial& dial, const AgentInfo& agent);
    // The connection of the dial has ended.
    void ended(const DialPtr& dial, const AgentConnection& connection, const std::string& reason);
    // Ends all attempts and retries.
    void stop();

private:
    using Clock = std::chrono::steady_clock;
    [[nodiscard]] DialPtr find(const std::string& host, std::uint16_t port) const;
    Result<DialPtr> add(const std::string& host, std::uint16_t port);
    void start(const DialPtr& dial);
    void begin_connection(const DialPtr& dial, asio::ip::tcp::socket socket);
    void failed(const DialPtr& dial, const std::string& reason);
    void store_offered_key(Dial& dial);

    const LinkThreads& threads_;
    const PairingPolicy pairing_;
    const AgentRegistry& registry_;
    const Connected connected_;
    asio::ip::tcp::resolver resolver_;
    std::vector<DialPtr> dials_;
    std::deque<Clock::time_point> begun_;  // of new addresses, within limits::new_dials_window
    // New codes of listening agents, by address, until they have worked.
    std::map<std::string, secure::PairingKey> offered_keys_;
    bool stopping_ = false;
};

}  // namespace flamewire::server
