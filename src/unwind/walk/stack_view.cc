#include "unwind/walk/stack_view.h"

namespace flamewire::unwind {

// A cut stack may extend this far beyond the copy. Addresses further away are damage, not depth.
static constexpr std::uint64_t furthest_stack = std::uint64_t{64} << 20;

std::uint64_t number_of(std::span<const std::byte> bytes, bool big_endian) {
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < bytes.size(); ++i)
        value = value << 8 | std::to_integer<std::uint64_t>(bytes[big_endian ? i : bytes.size() - 1 - i]);
    return value;
}

std::optional<std::uint64_t> StackView::read(std::uint64_t address, std::size_t size) const {
    const std::uint64_t offset = address - copy_.address;
    if (size > 8 || offset >= copy_.bytes.size() || copy_.bytes.size() - offset < size) return std::nullopt;
    return number_of(copy_.bytes.subspan(static_cast<std::size_t>(offset), size), big_endian_);
}

StopReason StackView::reason_for(std::uint64_t address) const {
    const std::uint64_t size = copy_.bytes.size();
    const std::uint64_t offset = address - copy_.address;
    const bool beyond = offset + word_size_ > size && offset < size + furthest_stack;
    return copy_.cut && beyond ? StopReason::truncated_copy : StopReason::bad_read;
}

}  // namespace flamewire::unwind
