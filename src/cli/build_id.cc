#include "cli/build_id.h"

#include "elf/elf_file.h"

namespace flamewire::cli {

std::string build_id_of(int fd) {
    const elf::ByteSource source = elf::source_of_fd(fd);
    const auto header = elf::read_header(source);
    return header ? elf::read_build_id(source, *header).value_or(std::string()) : std::string();
}

}  // namespace flamewire::cli
