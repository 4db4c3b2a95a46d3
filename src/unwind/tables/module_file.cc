#include "unwind/tables/module_file.h"

#include <algorithm>
#include <cstring>

namespace flamewire::unwind {
namespace {

constexpr std::size_t max_loads = 256;
constexpr std::uint32_t segment_writable = 2;  // PF_W

}  // namespace

Bytes ModuleFile::some(std::uint64_t offset, std::size_t size) {
    const Bytes page = pages_.page(id_, source_, offset / PageCache::page_size);
    const std::size_t start = static_cast<std::size_t>(offset % PageCache::page_size);
    if (start >= page.size()) return {};
    return page.subspan(start, std::min(size, page.size() - start));
}

Bytes ModuleFile::all(std::uint64_t offset, std::size_t size) {
    const Bytes part = some(offset, size);
    if (part.size() == size) return part;
    // Grows only as bytes are read, so a wrong size costs no more memory than the file has bytes.
    crossing_.assign(as_text(part));
    while (crossing_.size() < size) {
        const Bytes next = some(offset + crossing_.size(), size - crossing_.size());
        if (next.empty()) return {};
        crossing_ += as_text(next);
    }
    return as_bytes_view(crossing_);
}

bool ModuleFile::read(std::uint64_t offset, std::span<std::byte> out) {
    while (!out.empty()) {
        const Bytes part = some(offset, out.size());
        if (part.empty()) return false;
        std::memcpy(out.data(), part.data(), part.size());
        offset += part.size();
        out = out.subspan(part.size());
    }
    return true;
}

std::string ModuleFile::read_once(std::uint64_t offset, std::size_t size) const {
    auto bytes = source_(offset, size);
    return bytes ? std::move(*bytes) : std::string();
}

void ModuleFile::set_segments(const std::vector<elf::Segment>& segments) {
    for (const elf::Segment& segment : segments)
        if (segment.type == elf::segment_load && segment.file_size != 0 && loads_.size() < max_loads)
            loads_.push_back(
                {{segment.vaddr, segment.offset, segment.file_size}, (segment.flags & segment_writable) != 0});
}

std::optional<FileRange> ModuleFile::range_from(std::uint64_t address) const {
    for (const Load& load : loads_) {
        if (!load.range.contains(address)) continue;
        const std::uint64_t skipped = address - load.range.address;
        return FileRange{address, load.range.offset + skipped, load.range.size - skipped};
    }
    return std::nullopt;
}

}  // namespace flamewire::unwind
