// The link from a stripped file to its debug file: section .gnu_debuglink.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "symbol/files/object_file.h"

namespace flamewire::symbol {

struct DebugLink {
    std::string name;
    std::uint32_t checksum = 0;
};

// The section has a file name, padding to 4 bytes, and the CRC-32 of the whole debug file in the file's byte order.
std::optional<DebugLink> debug_link(const ObjectFile& file);

// CRC-32 of a whole file; nullopt if it cannot be read.
std::optional<std::uint32_t> checksum_of(const std::string& path);

}  // namespace flamewire::symbol
