// The one way to read bytes from outside: a bounds-checked cursor over a span. A read past the end
// fails once and for all (ok() turns false, values are zero), so a decoder checks at the end of a unit, not at
// every field. Unaligned access is always safe.
#pragma once

#include <bit>
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

class ByteReader {
public:
    explicit ByteReader(Bytes bytes) : bytes_(bytes) {}

    // Next T in host byte order.
    template <class T>
        requires std::is_trivially_copyable_v<T>
    T read() {
        T value{};
        if (take(sizeof(T))) std::memcpy(&value, bytes_.data() + position_ - sizeof(T), sizeof(T));
        return value;
    }

    // Next unsigned integer stored big-endian (network order).
    template <class T>
        requires std::is_unsigned_v<T>
    T read_big_endian() {
        T value = 0;
        if (!take(sizeof(T))) return value;
        for (std::size_t i = 0; i < sizeof(T); ++i)
            value = static_cast<T>(static_cast<T>(value << 8) | std::to_integer<T>(bytes_[position_ - sizeof(T) + i]));
        return value;
    }

    // The next `count` bytes, or an empty span (and ok() false) when there are fewer.
    Bytes read_bytes(std::size_t count) { return take(count) ? bytes_.subspan(position_ - count, count) : Bytes{}; }

    // A NUL-terminated string, without the NUL; fails when no NUL follows.
    std::string_view read_c_string() {
        const std::string_view rest = as_text(bytes_.subspan(position_));
        const std::size_t end = rest.find('\0');
        if (!ok_ || end == std::string_view::npos) {
            ok_ = false;
            return {};
        }
        position_ += end + 1;
        return rest.substr(0, end);
    }

    void skip(std::size_t count) { (void)take(count); }

    [[nodiscard]] bool ok() const { return ok_; }
    [[nodiscard]] std::size_t position() const { return position_; }
    [[nodiscard]] std::size_t remaining() const { return bytes_.size() - position_; }

private:
    bool take(std::size_t count) {
        if (!ok_ || count > remaining()) {
            ok_ = false;
            return false;
        }
        position_ += count;
        return true;
    }

    Bytes bytes_;
    std::size_t position_ = 0;
    bool ok_ = true;
};

}  // namespace flamewire
