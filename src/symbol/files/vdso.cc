#include "symbol/files/vdso.h"

#include <sys/auxv.h>

#include <algorithm>

namespace flamewire::symbol {

Result<ObjectFile> own_vdso(const std::string& build_id) {
    // NOLINTNEXTLINE(performance-no-int-to-ptr): the auxiliary vector has the address as a number.
    const auto* const start = reinterpret_cast<const std::byte*>(getauxval(AT_SYSINFO_EHDR));
    if (start == nullptr) return fail(ErrorCode::not_found, "this process has no vDSO");
    // The headers come from the running kernel, so their sizes are trusted: the image ends at the end of its sections
    // or segment. One page holds all headers except the section headers, which are at the very end.
    const Bytes first_page(start, 4096);
    const elf::Header header = TRY(elf::read_header(elf::source_of_bytes(first_page)));
    std::uint64_t size = header.section_offset + std::uint64_t{header.section_entry_size} * header.section_count;
    for (const elf::Segment& segment : header.segments)
        if (segment.type == elf::segment_load) size = std::max(size, segment.offset + segment.file_size);
    ObjectFile file = TRY(ObjectFile::of_image(std::string(as_text(Bytes(start, static_cast<std::size_t>(size))))));
    const std::string own = TRY(file.build_id());
    if (build_id.empty() || own != build_id)
        return fail(ErrorCode::not_found, "the target's vDSO is from another kernel than this machine's");
    return file;
}

}  // namespace flamewire::symbol
