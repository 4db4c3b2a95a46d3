#pragma once

#include <string>

namespace flamewire::cli {

// The build-id of an ELF file as raw bytes. Empty: there is none, or the file is not readable.
std::string build_id_of(int fd);

}  // namespace flamewire::cli
