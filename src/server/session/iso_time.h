// Times as text, in the answers and side files of the server.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace flamewire::server {

// Formats nanoseconds since 1970, for example as 2026-11-20T21:30:05.123Z.
std::string iso_time(std::int64_t realtime_ns);
// The reverse; 0 if the text does not have that form.
std::int64_t parse_iso_time(std::string_view text);

}  // namespace flamewire::server
