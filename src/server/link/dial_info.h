// An address that the server dials, as a value for answers, and an explanation of failed attempts.
#pragma once

#include <system_error>

#include <cstdint>
#include <string>

namespace flamewire::server {

struct DialInfo {
    enum class State : std::uint8_t { connecting, waiting, connected };
    std::string host;
    std::uint16_t port = 0;
    State state = State::connecting;
    std::string agent;             // connected: its id
    std::string problem;           // of the last attempt, one sentence; empty: none so far
    std::uint64_t attempts = 0;    // since it was last connected
    std::uint64_t next_in_ms = 0;  // waiting: until the next attempt
};

// Explains why an attempt failed and what to do about it.
std::string explain_dial(const std::string& host, std::uint16_t port, const std::error_code& error, bool timed_out);

}  // namespace flamewire::server
