// Views of bytes, and of text as bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <type_traits>

namespace flamewire {

using Bytes = std::span<const std::byte>;

inline Bytes as_bytes_view(std::string_view text) { return std::as_bytes(std::span(text.data(), text.size())); }
inline std::string_view as_text(Bytes bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

// Reads a trivially copyable T at `offset`, or returns false when it does not fit.
template <class T>
    requires std::is_trivially_copyable_v<T>
[[nodiscard]] bool read_at(Bytes bytes, std::uint64_t offset, T& out) {
    if (offset > bytes.size() || bytes.size() - offset < sizeof(T)) return false;
    std::memcpy(&out, bytes.data() + offset, sizeof(T));
    return true;
}

}  // namespace flamewire
