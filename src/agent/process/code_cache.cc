#include "agent/process/code_cache.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "agent/process/process_memory.h"

namespace flamewire::agent {
namespace {

// Two lines each: with one, two hot lines of the same set would evict each other with every sample. 176 KiB in all.
constexpr std::size_t sets = 1024;
// Code can be replaced in place.
constexpr std::uint64_t fresh_ns = 1'000'000'000;
// A read takes about 2 us. This bounds the cost for programs with much JIT code.
constexpr unsigned max_reads_per_second = 500;

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
    now_ns = newest_ns_ = std::max(newest_ns_, std::max<std::uint64_t>(now_ns, 1));
    if (lines_.empty()) lines_.resize(2 * sets);
    const std::uint64_t mixed = (address / line_bytes + (std::uint64_t{process} << 40)) * 0x9e3779b97f4a7c15;
    Line* const set = &lines_[static_cast<std::size_t>(mixed >> 32) % sets * 2];
    const auto is_wanted = [&](const Line& line) {
        return line.read_ns != 0 && line.process == process && line.address == address;
    };
    if (!is_wanted(set[0]) && is_wanted(set[1])) std::swap(set[0], set[1]);
    Line& line = set[0];
    const bool known = is_wanted(line);
    if (known && (pid == 0 || now_ns - line.read_ns < fresh_ns)) return &line;
    if (pid == 0) return nullptr;
    if (now_ns - window_start_ns_ >= fresh_ns) {
        window_start_ns_ = now_ns;
        reads_ = 0;
    }
    if (reads_ == max_reads_per_second) return known ? &line : nullptr;
    ++reads_;
    constexpr std::size_t words = line_bytes / sizeof(std::uint64_t);
    std::array<std::uint64_t, words> addresses, values;
    for (std::size_t i = 0; i < words; ++i) addresses[i] = address + i * sizeof(std::uint64_t);
    const auto got = read_words(pid, sizeof(std::uint64_t), addresses, values);
    if (got && *got == words) {
        if (!known) set[1] = line;
        line.process = process;
        line.address = address;
        std::memcpy(line.bytes.data(), values.data(), line_bytes);
    } else if (!known) {
        return nullptr;
    }
    // Keep a known line if the read fails: the process has just ended, and the sample was taken before that.
    line.read_ns = now_ns;
    return &line;
}

}  // namespace flamewire::agent
