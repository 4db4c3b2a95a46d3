// What the server takes from others at most, in one place: agents, browsers, recordings. Other rooms have their own:
// wire/batch.h and wire/frame.h (what one frame may be), profile/store/store.h (what one session may keep in memory). All of
// them are listed in docs/limits.md, which unit_limits makes out of the constants. Whoever refuses something because of
// one counts it here, and /metrics shows how often.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace flamewire::server {

namespace limits {

// Connections of agents. Unnamed ones have not said hello: whoever holds them holds no place of an agent.
inline constexpr std::size_t agent_connections = 256;
inline constexpr std::size_t unnamed_connections = 96, unnamed_connections_of_host = 48;
inline constexpr std::size_t connections_of_key = 16;  // a key is one agent's; some boards boot from one image
inline constexpr std::chrono::seconds hello_time{10};
inline constexpr std::size_t agent_id_bytes = 128;
inline constexpr std::uint32_t hello_bytes = 256U << 10;
inline constexpr std::size_t outbox_bytes = std::size_t{4} << 20;  // that an agent does not read
// Above this much waiting for the workers (or for the disk) a connection is not read.
inline constexpr std::size_t inbox_bytes = std::size_t{16} << 20;
// Of frames that have begun and not ended, of all connections together; who holds no more than the second is not meant.
inline constexpr std::size_t unfinished_bytes = std::size_t{256} << 20;
inline constexpr std::size_t unfinished_bytes_of_one = std::size_t{1} << 20;
inline constexpr std::size_t gone_agents = 64;  // that are remembered
inline constexpr std::chrono::minutes gone_agents_time{10};
inline constexpr std::size_t turned_away = 8;         // connections that the page tells of
inline constexpr std::size_t commands_of_agent = 64;  // that wait for its answers
inline constexpr std::size_t dials = 64, new_dials = dials;
inline constexpr std::chrono::seconds new_dials_window{60};
inline constexpr std::chrono::seconds dial_time{10};

// Recordings that one pairing key begins, or one address without a key.
inline constexpr std::size_t new_recordings = agent_connections;
inline constexpr std::chrono::seconds new_recordings_window{60};

inline constexpr std::size_t imports_waiting = 64;  // that a page may begin before they run

// Browsers.
inline constexpr std::size_t http_connections = 512, http_connections_of_host = 128, streams = 128;
// A zoom into a deep stack names every frame on the way to it.
inline constexpr std::uint32_t http_target_bytes = std::uint32_t{1} << 20;
inline constexpr std::uint32_t http_fields_bytes = std::uint32_t{128} << 10;
inline constexpr std::chrono::seconds http_read_time{60}, http_write_time{60}, tls_handshake_time{10};
// After this time the header of a request is complete, so what still arrives is a body: at least at this rate.
inline constexpr std::chrono::seconds http_header_time{10};
inline constexpr std::uint64_t http_read_rate = 4096;  // bytes a second
// While an answer is sent, the other end takes at least so much of it in each http_write_time.
inline constexpr std::uint64_t http_write_rate = 1024;
// How long a request may wait for a worker, and how many of one host may wait for queries or for reading files. Each keeps
// its connection, so there are fewer of them than of connections.
inline constexpr std::chrono::seconds http_wait{30};
inline constexpr std::size_t http_waiting = 96;
static_assert(2 * http_waiting + streams < http_connections);
// How long an answer may take that is made of sessions in memory, and one that reads files first.
inline constexpr std::chrono::seconds query_time{120}, slow_query_time{600};

}  // namespace limits

// What can be reached by what somebody else does.
enum class Limit : std::uint8_t {
    agent_connections,
    unnamed_connections,
    connections_of_key,
    hello_time,
    outbox_bytes,
    inbox_bytes,
    unfinished_bytes,
    commands_of_agent,
    dials,
    new_dials,
    new_recordings,
    foreign_recordings,
    session_bytes,
    table_bytes,
    health_bytes,
    health_frame,
    module_bytes,
    http_connections,
    http_connections_of_host,
    http_message,
    http_header_time,
    http_write_rate,
    http_wait,
    http_waiting,
    query_time,
    wrong_tokens,
    tls_handshake_time,
    streams,
    import_memory,
    imports_waiting,
    count
};
inline constexpr std::size_t limit_count = static_cast<std::size_t>(Limit::count);

// As /metrics and docs/limits.md call it.
inline constexpr std::array<std::string_view, limit_count> limit_names{
    "agent_connections",
    "unnamed_connections",
    "connections_of_key",
    "hello_time",
    "outbox_bytes",
    "inbox_bytes",
    "unfinished_bytes",
    "commands_of_agent",
    "dials",
    "new_dials",
    "new_recordings",
    "foreign_recordings",
    "session_bytes",
    "table_bytes",
    "health_bytes",
    "health_frame",
    "module_bytes",
    "http_connections",
    "http_connections_of_host",
    "http_message",
    "http_header_time",
    "http_write_rate",
    "http_wait",
    "http_waiting",
    "query_time",
    "wrong_tokens",
    "tls_handshake_time",
    "streams",
    "import_memory",
    "imports_waiting",
};

// How often each was reached since the program started. Any thread.
inline std::array<std::atomic<std::uint64_t>, limit_count> limits_reached{};
inline void limit_reached(Limit limit) {
    limits_reached[static_cast<std::size_t>(limit)].fetch_add(1, std::memory_order_relaxed);
}

inline std::uint64_t times_reached(Limit limit) {
    return limits_reached[static_cast<std::size_t>(limit)].load(std::memory_order_relaxed);
}

}  // namespace flamewire::server
