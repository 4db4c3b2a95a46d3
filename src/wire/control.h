// The JSON messages of the link (flags 2, 3 and 8) as values: commands, replies, hello, acknowledgments. docs/wire.md
// lists the fields. Parsing is bounded (depth, size) and never throws.
#pragma once

#include <rapidjson/document.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "wire/batch.h"

namespace flamewire::wire {

// Sent in the hello. A server refuses newer versions. Additions that older servers can skip do not need a new version.
inline constexpr std::uint32_t protocol_version = 1;

inline constexpr std::size_t max_json_bytes = std::size_t{4} << 20;
inline constexpr std::size_t max_json_depth = 64;

// Parses an untrusted JSON object: from the link, a session file or a request. invalid: it is not a single object, is
// not valid UTF-8, or is nested deeper than max_json_depth. too_large: more than max_json_bytes.
Result<rapidjson::Document> parse_object(std::string_view json);

// Return the member, or a default if it is absent or of another type. `object` must be an object.
std::string text_member(const rapidjson::Value& object, const char* name);
std::uint64_t number_member(const rapidjson::Value& object, const char* name, std::uint64_t otherwise = 0);
std::vector<std::string> texts_member(const rapidjson::Value& object, const char* name);

// server -> agent. `args` is an object, {} if absent.
struct Command {
    std::string id, name;
    rapidjson::Document args;
};
// invalid: not a JSON object, "id" or "cmd" is not a string of 1 to 128 bytes, or "args" is not an object.
Result<Command> parse_command(std::string_view json);
std::string encode_command(std::string_view id, std::string_view name, const rapidjson::Value& args);

// {"id","ok":false,"error":text}
std::string encode_error_reply(std::string_view id, std::string_view text);

// server -> agent, flag 8: the last batch of `recording` that is on disk; seq is 0 if there is none. Without a
// recording, it answers a hello that named none.
struct Ack {
    std::optional<RecordingId> recording;
    std::uint64_t seq = 0;
};
Result<Ack> parse_ack(std::string_view json);
std::string encode_ack(const Ack& ack);

// agent -> server, flag 3: the first frame of every connection.
struct Hello {
    std::uint32_t version = protocol_version;
    std::string agent = "flamewire";
    std::string agent_version;
    std::string agent_id;  // the same for every connection of one agent
    struct Platform {
        std::string arch, endian, kernel, hostname;
        std::uint32_t page_size = 0, cpus = 0;
        std::string boot_id;
        std::int32_t perf_event_paranoid = 0;
        std::vector<std::string> pmus;
        std::string clock = "monotonic";
    } platform;
    struct Capabilities {
        std::vector<std::string> record_events, stat_only_events;
        std::string callgraph_method = "fp";
        std::vector<std::string> unwind_modes;
    } capabilities;
    std::string state = "idle";  // "idle", "profiling" or "paused"
    // The recording of which the agent holds batches: it is running or not yet completely acknowledged.
    struct Kept {
        RecordingId id{};
        std::uint64_t first_unacknowledged = 0;  // the oldest batch in the spool; last_seq + 1 if all are acknowledged
        std::uint64_t last_seq = 0;              // the newest batch; 0 before the first
    };
    std::optional<Kept> recording;
};
// invalid: "type" is not "hello" or the version is not a number. Any other missing or invalid member has its default.
Result<Hello> parse_hello(std::string_view json);
std::string encode_hello(const Hello& hello);

}  // namespace flamewire::wire
