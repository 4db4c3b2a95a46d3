#pragma once

#include <string>

namespace flamewire::cli {

// The build-id of an ELF file, raw bytes; empty where it has none or cannot be read.
std::string build_id_of(int fd);

}  // namespace flamewire::cli
