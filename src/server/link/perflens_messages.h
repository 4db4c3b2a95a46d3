// Translates between the JSON of PerfLens agents (0.9, 0.10) and ours. They share the framing and most of the words.
// Pure functions.
#pragma once

#include <rapidjson/document.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "wire/batch.h"

namespace flamewire::server {

bool is_perflens_hello(const rapidjson::Document& hello);
// The hello in our format, for code that reads ours.
std::string hello_of_perflens(const rapidjson::Document& hello);
// What its hello reports about a recording. The code that starts the recording fills in the rest.
wire::Recording recording_of_perflens(const rapidjson::Document& hello, std::string_view host);

// Translates one of our commands. invalid: PerfLens has no such command; the message is one sentence with the remedy.
Result<std::string> command_for_perflens(std::string_view id, std::string_view name, const rapidjson::Value& args);
// The command that sends its pairing code.
std::string auth_for_perflens(std::string_view id, std::string_view token);
// Its reply to a command, plus the fields that our replies have and its replies lack.
std::string reply_of_perflens(std::string_view command, const rapidjson::Document& received);
// A health frame with the time on the clock of the samples. Empty if it is not a health frame.
std::string metrics_of_perflens(std::string_view json, std::uint64_t mono_ns);

}  // namespace flamewire::server
