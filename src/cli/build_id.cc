#include "cli/build_id.h"

#include "base/file.h"
#include "elf/elf_file.h"

namespace flamewire::cli {

std::string build_id_of(const std::string& path) {
    const auto fd = open_read(path);
    if (!fd) return {};
    const elf::ByteSource source = elf::source_of_fd(fd->get());
    const auto header = elf::read_header(source);
    return header ? elf::read_build_id(source, *header).value_or(std::string()) : std::string();
}

}  // namespace flamewire::cli
