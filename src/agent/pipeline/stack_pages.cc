#include "agent/pipeline/stack_pages.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>

#include "agent/process/process_memory.h"
#include "base/system.h"

namespace flamewire::agent {
namespace {

// Each takes a few microseconds. Pages stay present once read, so a thread needs one or two.
constexpr unsigned reads_a_second = 500;
constexpr std::uint64_t second_ns = 1'000'000'000;
// The largest copy has 64 KiB.
constexpr std::size_t most_pages = 17;

}  // namespace

bool StackPages::make_present(std::uint32_t pid, std::uint64_t address, std::uint64_t bytes, std::uint64_t time_ns) {
    if (time_ns - window_ns_ >= second_ns) {
        window_ns_ = time_ns;
        reads_ = 0;
    }
    if (bytes == 0 || reads_ == reads_a_second) return false;
    ++reads_;
    const std::uint64_t page_bytes = System::current().constant(Constant::page_bytes);
    const std::uint64_t first = address & ~(page_bytes - 1);
    const auto count = static_cast<std::size_t>(
        std::min<std::uint64_t>((address - first + bytes + page_bytes - 1) / page_bytes, most_pages));
    std::array<std::uint64_t, most_pages> addresses{}, words{};
    for (std::size_t i = 0; i < count; ++i) addresses[i] = first + i * page_bytes;
    const auto read = read_words(pid, sizeof(std::uint32_t), std::span(addresses).first(count), words);
    return read && *read != 0;
}

}  // namespace flamewire::agent
