#include "symbol/files/code_file.h"

#include <elf.h>

#include <utility>

#include "base/fd.h"
#include "base/file.h"

namespace flamewire::symbol {

std::optional<std::uint64_t> CodeFile::address_of(std::uint64_t file_offset) const {
    constexpr std::uint64_t page_size = 4096;
    return elf::vaddr_of_offset(segments, file_offset, page_size);
}

std::optional<CodeFile> read_code_file(const std::string& path) {
    if (path.empty()) return std::nullopt;
    const Result<UniqueFd> fd = open_read(path);
    if (!fd) return std::nullopt;
    Result<elf::Header> header = elf::read_header(elf::source_of_fd(fd->get()));
    if (!header) return std::nullopt;
    return CodeFile{path, header->type == ET_EXEC, std::move(header->segments)};
}

}  // namespace flamewire::symbol
