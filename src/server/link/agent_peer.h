// State of one connection and of one dialed address. Private to the hub's files.
#pragma once

#include <set>

#include "server/link/agent_hub.h"
#include "server/link/perflens_recording.h"

namespace flamewire::server {

struct AgentHub::Peer {
    std::shared_ptr<AgentConnection> connection;
    std::shared_ptr<Dial> dial;  // null for incoming
    std::string agent_id;        // empty until hello
    std::string owner;           // the pairing key that its recordings belong to; set with agent_id
    std::string address;         // of the other end, without port
    std::string host;            // secure::host_of() it
    Clock::time_point connected_at = Clock::now();
    bool open = true;

    // Frames that wait for the pool.
    std::deque<ArrivedFrame> inbox;
    std::size_t inbox_bytes = 0;
    bool inbox_full = false;
    bool busy = false;
    bool hello_waiting = false;    // a hello named `recording`: look it up once the inbox is empty
    ArrivedFrame hello;            // that one
    Clock::time_point retry_at{};  // do not retry before; set when the disk refused
    bool disk_error_reported = false;

    std::shared_ptr<Session> session;
    std::optional<wire::RecordingId> recording;  // the recording that gets acknowledgments

    // The agent's CPU time over the last seconds, and the smallest clock difference.
    std::deque<std::pair<std::uint64_t, std::uint64_t>> cpu;  // (monotonic, cpu) ns
    std::optional<std::int64_t> least_difference_ns;

    // For an agent of PerfLens; null for our own agents.
    struct PerfLens;
    std::shared_ptr<PerfLens> perflens;

    // Fetching module files.
    std::optional<Fetching> fetching;
    std::set<profile::ModuleId> fetch_refused;  // of `session`: refused or already fetched
    Clock::time_point next_fetch_at{};

    // Requests for kernel symbols.
    Clock::time_point kernel_requested_at{}, kernel_missing_since{};
    std::size_t kernel_missing_at_request = 0;
};

// Any thread after the hello: from then on the address, the host and the owner do not change.
inline Sender AgentHub::sender_of(const Peer& peer) { return {peer.connection->address(), peer.host, peer.owner}; }

// Adapts a PerfLens agent to the rest of the server, which handles only our own protocol.
struct AgentHub::Peer::PerfLens {
    PerfLensRecording recording;  // belongs to the pool while `busy`
    wire::Recording metadata;     // for the next recording
    std::string auth_id;          // id of the command with the pairing code; empty: answered, or never sent
    Clock::time_point end_at{};   // after a stop: texts still on their way belong to the recording
    std::string end_reason;       // not empty: end the recording once it is not `busy`
};

struct AgentHub::Dial {
    Dial(asio::io_context& io, std::string agent_host, std::uint16_t agent_port)
        : host(std::move(agent_host)), port(agent_port), timer(io) {}
    std::string host;
    std::uint16_t port;
    asio::steady_timer timer;
    std::chrono::milliseconds backoff{1000};
    bool kept = false;       // redialed if it fails or closes
    bool waiting = false;    // for its next attempt
    bool cancelled = false;  // discard the result of the attempt under way
    std::string problem;     // of the last attempt
    std::uint64_t attempts = 0;
    Clock::time_point next_at{};
    std::weak_ptr<asio::ip::tcp::socket> attempt;  // under way
    std::weak_ptr<Peer> peer;
    std::function<void(Result<AgentInfo>)> answer;  // of connect(), until hello or failure
    std::optional<secure::PairingKey> offered_key;  // the offered code that this attempt uses
};

}  // namespace flamewire::server
