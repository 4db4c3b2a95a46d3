#include "agent/process/process_memory.h"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>

#include "agent/process/maps.h"
#include "agent/process/proc_text.h"
#include "base/fd.h"
#include "base/file.h"
#include "base/system.h"

namespace flamewire::agent {

Result<std::size_t> read_words(std::uint32_t pid, std::size_t word_size, std::span<const std::uint64_t> addresses,
                               std::span<std::uint64_t> values) {
    const std::size_t count = std::min({addresses.size(), values.size(), most_words_at_once});
    const bool ours_are_short = System::current().constant(Constant::word_bytes) == sizeof(std::uint32_t);
    const auto ours = [&](std::uint64_t address) { return !ours_are_short || address <= UINT32_MAX; };
    if (!std::ranges::all_of(addresses.first(count), ours))
        return read_words_of_file(pid, word_size, addresses.first(count), values);
    // Words of 4 bytes arrive packed at the front, and are expanded from the last one on.
    const std::ptrdiff_t bytes = System::current().read_memory(pid, word_size, addresses.first(count),
                                                               std::as_writable_bytes(values).first(count * word_size));
    if (bytes == -ENOSYS) return read_words_of_file(pid, word_size, addresses.first(count), values);
    if (bytes < 0)
        return fail_errno("cannot read the memory of process " + std::to_string(pid), static_cast<int>(-bytes));
    const std::size_t read = static_cast<std::size_t>(bytes) / word_size;
    if (word_size == sizeof(std::uint32_t)) {
        const auto* packed = reinterpret_cast<const std::byte*>(values.data());
        for (std::size_t i = read; i-- > 0;) {
            std::uint32_t half = 0;
            std::memcpy(&half, packed + i * sizeof half, sizeof half);
            values[i] = half;
        }
    }
    return read;
}

Result<std::size_t> read_words_of_file(std::uint32_t pid, std::size_t word_size,
                                       std::span<const std::uint64_t> addresses, std::span<std::uint64_t> values) {
    const UniqueFd memory = TRY(open_read("/proc/" + std::to_string(pid) + "/mem"));
    const std::size_t count = std::min(addresses.size(), values.size());
    for (std::size_t i = 0; i < count; ++i) {
        std::uint32_t half = 0;
        const auto to = word_size == sizeof half ? std::as_writable_bytes(std::span(&half, 1))
                                                 : std::as_writable_bytes(values.subspan(i, 1));
        const std::ptrdiff_t got = System::current().read_at(memory.get(), addresses[i], to);
        if (got != static_cast<std::ptrdiff_t>(word_size)) return i;
        if (word_size == sizeof half) values[i] = half;
    }
    return count;
}

std::uint64_t end_of_area(const std::string& proc_root, std::uint32_t pid, std::uint64_t address) {
    auto lines = LineReader::open(proc_path(proc_root, pid, "maps"), 16 * 1024);
    if (!lines) return 0;
    for (std::string_view line; lines->next(line);) {
        const auto entry = parse_maps_line(line);
        if (entry && address >= entry->start && address < entry->end) return entry->end;
    }
    return 0;
}

}  // namespace flamewire::agent
