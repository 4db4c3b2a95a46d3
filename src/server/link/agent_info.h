// What the server knows of an agent, as a value for answers and events.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "server/session/json_writer.h"
#include "wire/batch.h"

namespace flamewire::server {

struct AgentInfo {
    std::string id;       // the agent's own id: the same at every connect
    std::string address;  // host:port of the other end
    bool connected = false;
    bool outgoing = false;  // the server dialled
    enum class Link : std::uint8_t { encrypted, insecure };
    Link link = Link::insecure;
    std::string key;             // id of the pairing key; empty: none
    std::string owner;           // the key that what it records belongs to: that one, or the first of those it replaced
    std::string state = "idle";  // idle, profiling, paused, away
    std::string session;         // running; empty when idle
    std::string target;
    std::string hello = "{}";  // JSON as received
    std::string problem;       // why its batches wait here, one sentence; empty: they do not
    std::optional<wire::AgentStats> stats;
    double cpu_percent = 0;
    double clock_offset_ms = 0;
    std::optional<double> latency_ms;
};

// As it was at some moment; shared by all who ask.
using AgentPtr = std::shared_ptr<const AgentInfo>;

// A connection that ended before it was an agent's.
struct TurnedAway {
    std::string address, reason;
    std::int64_t at_ns = 0;  // wall clock
};

// The Agent object of docs/openapi.yaml.
void write_agent(JsonWriter& json, const AgentInfo& agent);

}  // namespace flamewire::server
