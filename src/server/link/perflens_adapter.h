// Agents of PerfLens: their hello and pairing code, their commands and replies, and the ends of their recordings, which
// they do not report. Their texts take the same path as batches (IngestPipeline). Everything runs on the io thread.
#pragma once

#include <rapidjson/document.h>

#include <optional>
#include <string>

#include "server/link/agent_peer.h"
#include "server/link/command_relay.h"
#include "server/link/ingest_pipeline.h"
#include "server/link/link_threads.h"

namespace flamewire::server {

class PerfLensAdapter {
public:
    // Whether agents of PerfLens are accepted.
    struct Policy {
        bool accept = false;
        std::string token;  // their pairing code; empty: do not ask them for one
    };

    PerfLensAdapter(const LinkThreads& threads, Policy policy, CommandRelay& commands, IngestPipeline& pipeline)
        : threads_(threads), policy_(std::move(policy)), commands_(commands), pipeline_(pipeline) {}

    // Prepares the connection for an agent of PerfLens and returns its hello in our format. Nothing: it is not accepted,
    // and the connection closes.
    std::optional<std::string> accept(AgentPeer& peer, const rapidjson::Document& hello);
    // After the hello: sends the pairing code, or asks for the agent's state.
    void begin(const AgentPeer& peer, const rapidjson::Document& hello);
    // False if it is not the reply to the pairing code.
    bool handle_pairing_reply(const AgentPeer& peer, const rapidjson::Document& reply);
    // Sends a command that CommandRelay began.
    void send_command(const PeerPtr& peer, const std::string& id, const std::string& name,
                      const rapidjson::Value& args);
    // Translates the reply to a command, and keeps what it reports about the recording.
    static void translate_reply(const AgentPeer& peer, const std::string& command, const rapidjson::Document& reply,
                                CommandAnswer& answer);
    // Ends a recording that was stopped, once its last texts have arrived.
    void end_stopped(const PeerPtr& peer);

private:
    void request_status(const AgentPeer& peer);

    const LinkThreads& threads_;
    const Policy policy_;
    CommandRelay& commands_;
    IngestPipeline& pipeline_;
};

}  // namespace flamewire::server
