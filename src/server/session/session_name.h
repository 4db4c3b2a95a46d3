// Names of new sessions, which are names of directories, and the recording of a stream.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "wire/batch.h"

namespace flamewire::server {

// Up to 40 characters of `target`: letters, digits, '.', '_' and '-' stay, others become '_'. "session" if nothing is
// left.
std::string sanitized_name(std::string_view target);

// For the name of a new session: local time and sanitized_name().
std::string timestamped_name(std::string_view target);

// Reads the recording id from the first batch of a stream.
Result<wire::RecordingId> read_recording_id(const std::string& stream_path);

}  // namespace flamewire::server
