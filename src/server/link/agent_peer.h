// The state of one connection to an agent. Only the io thread uses it, except where a comment states otherwise.
#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "server/link/agent_connection.h"
#include "server/link/agent_statistics.h"
#include "server/link/dial.h"
#include "server/link/ingest.h"
#include "server/link/kernel_name_requests.h"
#include "server/link/perflens_recording.h"
#include "symbol/types/module_identity.h"
#include "wire/batch.h"

namespace flamewire::server {

struct AgentPeer {
    using Clock = std::chrono::steady_clock;

    std::shared_ptr<AgentConnection> connection;
    std::shared_ptr<Dial> dial;  // null for incoming
    std::string agent_id;        // empty until hello
    std::string owner;           // the pairing key that its recordings belong to; set with agent_id
    std::string address;         // of the other end, without port
    std::string host;            // secure::host_of() it
    Clock::time_point connected_at = Clock::now();
    bool open = true;

    // Frames that wait for the pool. Of IngestPipeline.
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

    AgentStatistics statistics;
    KernelNameRequests kernel_names;

    // For an agent of PerfLens, whose frames are translated for the rest of the server. Of PerfLensAdapter.
    struct PerfLens {
        PerfLensRecording recording;  // belongs to the pool while `busy`
        wire::Recording metadata;     // for the next recording
        std::string auth_id;          // id of the command with the pairing code; empty: answered, or never sent
        Clock::time_point end_at{};   // after a stop: texts still on their way belong to the recording
        std::string end_reason;       // not empty: end the recording once it is not `busy`
    };
    std::shared_ptr<PerfLens> perflens;  // null for our own agents

    // The module file that is being fetched. Of ModuleFetcher.
    struct Fetching {
        std::shared_ptr<Session> session;
        profile::ModuleId module = 0;
        symbol::ModuleIdentity identity;
        std::string command;    // that requested the current part
        std::size_t bytes = 0;  // to request next
        ModuleFetch progress;
        Clock::time_point requested_at{};
    };
    std::optional<Fetching> fetching;
    std::set<profile::ModuleId> fetch_refused;  // of `session`: refused or already fetched
    Clock::time_point next_fetch_at{};

    // The sender of its frames. The address, the host and the owner do not change after the hello.
    [[nodiscard]] Sender sender() const { return {connection->address(), host, owner}; }
};
using PeerPtr = std::shared_ptr<AgentPeer>;

}  // namespace flamewire::server
