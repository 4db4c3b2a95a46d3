#include "agent/process/code_cache.h"

#include <algorithm>
#include <cstring>

#include "agent/process/process_memory.h"

namespace flamewire::agent {
namespace {

constexpr std::size_t lines = 2048;  // 190 KiB
// Code may be replaced in place.
constexpr std::uint64_t fresh_ns = 1'000'000'000;
// A read takes about 1 us. Programs with much other code of their own must not cost more than that.
constexpr unsigned reads_a_second = 500;

}  // namespace

bool CodeCache::read(std::uint32_t process, std::uint32_t pid, std::uint64_t address, std::uint64_t now_ns,
                     std::span<std::byte> out) {
    while (!out.empty()) {
        const Line* line = line_at(process, pid, address - address % line_bytes, now_ns);
        if (line == nullptr) return false;
        const auto begin = static_cast<std::size_t>(address % line_bytes);
        const std::size_t size = std::min(out.size(), line_bytes - begin);
        std::memcpy(out.data(), line->bytes.data() + begin, size);
        out = out.subspan(size);
        address += size;
    }
    return true;
}

const CodeCache::Line* CodeCache::line_at(std::uint32_t process, std::uint32_t pid, std::uint64_t address,
                                          std::uint64_t now_ns) {
    if (lines_.empty()) lines_.resize(lines);
    const std::uint64_t mixed = (address / line_bytes + (std::uint64_t{process} << 40)) * 0x9e3779b97f4a7c15;
    Line& line = lines_[static_cast<std::size_t>(mixed >> 32) % lines];
    const bool known = line.read_ns != 0 && line.process == process && line.address == address;
    if (known && (pid == 0 || now_ns - line.read_ns < fresh_ns)) return line.readable ? &line : nullptr;
    if (pid == 0) return nullptr;
    if (now_ns - second_ns_ >= fresh_ns) {
        second_ns_ = now_ns;
        reads_ = 0;
    }
    if (reads_ == reads_a_second) return known && line.readable ? &line : nullptr;
    ++reads_;
    constexpr std::size_t words = line_bytes / sizeof(std::uint64_t);
    std::array<std::uint64_t, words> addresses, values;
    for (std::size_t i = 0; i < words; ++i) addresses[i] = address + i * sizeof(std::uint64_t);
    const auto got = read_words(pid, sizeof(std::uint64_t), addresses, values);
    const bool readable = got && *got == words;
    // Of a process that has just ended, what was there is still right.
    if (!readable && known && line.readable) {
        line.read_ns = now_ns;
        return &line;
    }
    line.process = process;
    line.address = address;
    line.read_ns = std::max<std::uint64_t>(now_ns, 1);
    line.readable = readable;
    if (readable) std::memcpy(line.bytes.data(), values.data(), line_bytes);
    return readable ? &line : nullptr;
}

}  // namespace flamewire::agent
