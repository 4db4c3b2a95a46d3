// State of an agent, as a value for answers and events.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/json_writer.h"
#include "wire/batch.h"

namespace flamewire::server {

struct AgentInfo {
    std::string id;       // the agent's own id: the same for every connection
    std::string address;  // host:port of the other end
    bool connected = false;
    bool outgoing = false;  // the server dialed
    enum class Link : std::uint8_t { encrypted, insecure };
    Link link = Link::insecure;
    std::string key;             // id of the pairing key; empty: none
    std::string owner;           // the key that owns its recordings: `key`, or the first of those that it replaced
    std::string state = "idle";  // idle, profiling, paused, away
    std::string session;         // running; empty when idle
    std::string target;
    std::string hello = "{}";  // JSON as received
    std::string problem;       // why its batches wait here, one sentence; empty: they do not wait
    std::optional<wire::AgentStats> stats;
    double cpu_percent = 0;
    double clock_offset_ms = 0;
    std::optional<double> latency_ms;
};

// A snapshot, shared by all readers.
using AgentPtr = std::shared_ptr<const AgentInfo>;

// A connection that ended before its hello was accepted.
struct TurnedAway {
    std::string address, reason;
    std::int64_t at_ns = 0;  // wall clock
};

// The Agent object of docs/openapi.yaml.
void write_agent(JsonWriter& json, const AgentInfo& agent);

}  // namespace flamewire::server
