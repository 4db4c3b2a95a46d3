#include "unwind/tables/frame_index.h"

#include <algorithm>
#include <limits>

namespace flamewire::unwind {
namespace {

// 32 MiB for the index. The largest programs have about a million functions.
constexpr std::size_t max_functions = std::size_t{4} << 20;
constexpr std::size_t max_windows = 64;
constexpr std::uint64_t lower_half = std::numeric_limits<std::uint32_t>::max();

}  // namespace

// Returns false if the index is full.
bool FrameIndex::add(const FrameSection::Start& start) {
    if (start.offset > lower_half || count_ == max_functions) return false;
    const std::uint64_t number = start.address >> 32;
    auto window = std::find_if(windows_.begin(), windows_.end(), [&](const Window& w) { return w.number >= number; });
    if (window == windows_.end() || window->number != number) {
        if (windows_.size() == max_windows) return true;
        window = windows_.insert(window, Window{number, {}});
    }
    window->functions.push_back(start.address << 32 | start.offset);
    ++count_;
    return true;
}

void FrameIndex::sort() {
    for (Window& window : windows_) {
        std::sort(window.functions.begin(), window.functions.end());
        window.functions.shrink_to_fit();
    }
}

std::optional<std::uint64_t> FrameIndex::find(std::uint64_t address) const {
    // A function can start at the end of one window and extend into the next.
    for (auto window = windows_.rbegin(); window != windows_.rend(); ++window) {
        if (window->number > address >> 32) continue;
        const std::uint64_t key = window->number == address >> 32 ? address << 32 | lower_half : ~std::uint64_t{0};
        const auto behind = std::upper_bound(window->functions.begin(), window->functions.end(), key);
        if (behind != window->functions.begin()) return *(behind - 1) & lower_half;
    }
    return std::nullopt;
}

std::uint64_t FrameIndex::offset_at(std::size_t position) const {
    for (const Window& window : windows_) {
        if (position < window.functions.size()) return window.functions[position] & lower_half;
        position -= window.functions.size();
    }
    return 0;
}

std::size_t FrameIndex::memory_bytes() const {
    std::size_t bytes = windows_.capacity() * sizeof(Window);
    for (const Window& window : windows_) bytes += window.functions.capacity() * sizeof(std::uint64_t);
    return bytes;
}

}  // namespace flamewire::unwind
