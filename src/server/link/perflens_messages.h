// The JSON of PerfLens agents (0.9, 0.10) and ours, each as the other: they share the framing, and most of the words. Pure.
#pragma once

#include <rapidjson/document.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "wire/batch.h"

namespace flamewire::server {

bool is_perflens_hello(const rapidjson::Document& hello);
// As a hello of ours, for who reads those.
std::string hello_of_perflens(const rapidjson::Document& hello);
// What its hello says of a recording; the rest is for who starts it.
wire::Recording recording_of_perflens(const rapidjson::Document& hello, std::string_view host);

// A command of ours as one that it has. invalid: it has none, in one sentence with the remedy.
Result<std::string> command_for_perflens(std::string_view id, std::string_view name, const rapidjson::Value& args);
// Its pairing code.
std::string auth_for_perflens(std::string_view id, std::string_view token);
// Its reply to a command, with the fields that ours have and it lacks.
std::string reply_of_perflens(std::string_view command, rapidjson::Document reply);
// A health frame with the time by the clock of samples; empty: it is none.
std::string metrics_of_perflens(std::string_view json, std::uint64_t mono_ns);

}  // namespace flamewire::server
