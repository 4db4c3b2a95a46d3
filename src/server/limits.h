// Limits on what the server accepts from agents, browsers and recordings. Related limits are in wire/batch.h and
// wire/frame.h (size of one frame) and in profile/store/store.h (memory of one session). unit_limits generates
// docs/limits.md from the constants. Code that refuses something because of a limit counts it here. /metrics exports
// the counts.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace flamewire::server {

namespace limits {

// Connections of agents. Unnamed connections have not sent a hello yet and do not have an agent id.
inline constexpr std::size_t agent_connections = 256;
inline constexpr std::size_t unnamed_connections = 96, unnamed_connections_of_host = 48;
inline constexpr std::size_t connections_of_key =
    16;  // A key belongs to one agent, but several boards can boot from one image.
inline constexpr std::chrono::seconds hello_time{10};
// Time between two handshakes of a host that failed too many. A handshake takes the io thread about 2 ms.
inline constexpr std::chrono::milliseconds handshake_pause{10};
inline constexpr std::size_t agent_id_bytes = 128;
inline constexpr std::uint32_t hello_bytes = 256U << 10;
inline constexpr std::size_t outbox_bytes = std::size_t{4} << 20;  // queued for an agent that does not read
// The server stops reading a connection while more than this waits for the workers or for the disk.
inline constexpr std::size_t inbox_bytes = std::size_t{16} << 20;
// Bytes of incomplete frames, of all connections together. A connection that holds at most unfinished_bytes_of_one
// stays open.
inline constexpr std::size_t unfinished_bytes = std::size_t{256} << 20;
inline constexpr std::size_t unfinished_bytes_of_one = std::size_t{1} << 20;
inline constexpr std::size_t gone_agents = 64;  // that stay listed after they disconnect
inline constexpr std::chrono::minutes gone_agents_time{10};
inline constexpr std::size_t turned_away = 8;         // refused connections that the page lists
inline constexpr std::size_t commands_of_agent = 64;  // that wait for its replies
inline constexpr std::size_t dials = 64, new_dials = dials;
inline constexpr std::chrono::seconds new_dials_window{60};
inline constexpr std::chrono::seconds dial_time{10};

// New recordings per pairing key, or per address if there is no key.
inline constexpr std::size_t new_recordings = agent_connections;
inline constexpr std::chrono::seconds new_recordings_window{60};

inline constexpr std::size_t imports_waiting = 64;  // that the page may start before they run

// Browsers.
inline constexpr std::size_t http_connections = 512, http_connections_of_host = 128, streams = 128;
// The URL of a zoom into a deep stack names every frame on the path.
inline constexpr std::uint32_t http_target_bytes = std::uint32_t{1} << 20;
inline constexpr std::uint32_t http_fields_bytes = std::uint32_t{128} << 10;
inline constexpr std::chrono::seconds http_read_time{60}, http_write_time{60}, tls_handshake_time{10};
// After this time the request header is complete. Whatever still arrives is a body, and must arrive at least at
// http_read_rate.
inline constexpr std::chrono::seconds http_header_time{10};
inline constexpr std::uint64_t http_read_rate = 4096;  // bytes per second
// Bytes of an answer that the client must accept in each http_write_time.
inline constexpr std::uint64_t http_write_rate = 1024;
// How long a request may wait for a worker, and how many requests of one host may wait for queries or for reading
// files. Each waiting request keeps its connection open, so http_waiting is smaller than the number of connections.
inline constexpr std::chrono::seconds http_wait{30};
inline constexpr std::size_t http_waiting = 96;
static_assert(2 * http_waiting + streams < http_connections);
// Maximum time of an answer from sessions in memory, and of one that first reads files.
inline constexpr std::chrono::seconds query_time{120}, background_query_time{600};

}  // namespace limits

// Limits that an agent, a browser or a recording can reach.
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

// The names in /metrics and docs/limits.md.
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

// How often each limit was reached since the program started. Any thread.
inline std::array<std::atomic<std::uint64_t>, limit_count> limits_reached{};
inline void limit_reached(Limit limit) {
    limits_reached[static_cast<std::size_t>(limit)].fetch_add(1, std::memory_order_relaxed);
}

inline std::uint64_t times_reached(Limit limit) {
    return limits_reached[static_cast<std::size_t>(limit)].load(std::memory_order_relaxed);
}

}  // namespace flamewire::server
