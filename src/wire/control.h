// The JSON messages of the link (flags 2, 3 and 8) as values: commands, replies, hello, acknowledgements. docs/wire.md lists
// the fields. Parsing is bounded (depth, size) and never throws.
#pragma once

#include <rapidjson/document.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "wire/batch.h"

namespace flamewire::wire {

// Parses any JSON object of the link; invalid unless it is one object of at most 64 levels.
Result<rapidjson::Document> parse_object(std::string_view json);

// server -> agent. `args` is an object, {} when absent.
struct Command {
    std::string id, name;
    rapidjson::Document args;
};
Result<Command> parse_command(std::string_view json);
std::string encode_command(std::string_view id, std::string_view name, const rapidjson::Value& args);

// {"id","ok":false,"error":text}
std::string encode_error_reply(std::string_view id, std::string_view text);

// server -> agent, flag 8: the last batch of `recording` that is on disk; seq 0 when it has none of it. No recording: the
// answer to a hello that named none.
struct Ack {
    std::optional<RecordingId> recording;
    std::uint64_t seq = 0;
};
Result<Ack> parse_ack(std::string_view json);
std::string encode_ack(const Ack& ack);

}  // namespace flamewire::wire
