// Bytes as lowercase hex (build-ids, recording ids) and back.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/bytes.h"

namespace flamewire {

std::string to_hex(Bytes bytes);
inline std::string to_hex(std::string_view bytes) { return to_hex(as_bytes_view(bytes)); }
// The decoded bytes as a string. nullopt if `hex` has an odd length or a character that is not a hex digit.
std::optional<std::string> from_hex(std::string_view hex);

}  // namespace flamewire
