// A bounds-checked cursor over bytes of unwind tables, in the file's byte order. A read past the end yields zeros and
// ok() false for ever after, so a decoder checks at the end of a unit. Source: DWARF 5, section 7.6 (LEB128).
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/bytes.h"

namespace flamewire::unwind {

// An unsigned number of 1 to 8 bytes.
inline std::uint64_t load_number(const std::byte* at, std::size_t size, bool big_endian) {
    const auto load = [&]<class T>(T value) -> std::uint64_t {
        std::memcpy(&value, at, sizeof value);
        return big_endian == (std::endian::native == std::endian::big) ? value : std::byteswap(value);
    };
    if (size == 4) return load(std::uint32_t{});
    if (size == 8) return load(std::uint64_t{});
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < size; ++i)
        value = value << 8 | std::to_integer<std::uint64_t>(at[big_endian ? i : size - 1 - i]);
    return value;
}

class DwarfCursor {
public:
    DwarfCursor(Bytes bytes, bool big_endian)
        : next_(bytes.data()), start_(next_), end_(next_ + bytes.size()), big_endian_(big_endian) {}

    // An unsigned number of 1 to 8 bytes.
    std::uint64_t fixed(std::size_t size) {
        if (!take(size)) return 0;
        return load_number(next_ - size, size, big_endian_);
    }
    std::uint8_t u8() { return take(1) ? std::to_integer<std::uint8_t>(next_[-1]) : std::uint8_t{0}; }

    // Bits beyond the 64th are dropped.
    std::uint64_t uleb() {
        std::uint64_t value = 0;
        for (unsigned shift = 0; take(1); shift += 7) {
            const auto byte = std::to_integer<std::uint64_t>(next_[-1]);
            if (shift < 64) value |= (byte & 0x7f) << shift;
            if ((byte & 0x80) == 0) return value;
        }
        return 0;
    }
    std::int64_t sleb() {
        std::uint64_t value = 0;
        for (unsigned shift = 0; take(1);) {
            const auto byte = std::to_integer<std::uint64_t>(next_[-1]);
            if (shift < 64) value |= (byte & 0x7f) << shift;
            shift += 7;
            if ((byte & 0x80) != 0) continue;
            if ((byte & 0x40) != 0 && shift < 64) value |= ~std::uint64_t{0} << shift;
            return static_cast<std::int64_t>(value);
        }
        return 0;
    }

    Bytes bytes(std::uint64_t size) {
        if (!take(size)) return {};
        return {next_ - size, static_cast<std::size_t>(size)};
    }
    void skip(std::uint64_t size) { (void)take(size); }

    [[nodiscard]] bool ok() const { return ok_; }
    [[nodiscard]] bool at_end() const { return next_ == end_; }
    [[nodiscard]] std::size_t position() const { return static_cast<std::size_t>(next_ - start_); }
    [[nodiscard]] std::size_t remaining() const { return static_cast<std::size_t>(end_ - next_); }
    [[nodiscard]] Bytes rest() const { return {next_, remaining()}; }

private:
    bool take(std::uint64_t size) {
        if (!ok_ || size > remaining()) {
            ok_ = false;
            return false;
        }
        next_ += size;
        return true;
    }

    const std::byte *next_, *start_, *end_;
    bool big_endian_;
    bool ok_ = true;
};

}  // namespace flamewire::unwind
