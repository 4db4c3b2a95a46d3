// Bounds-checked cursor over a span of bytes, in either byte order. All input from outside is read through it. A read
// past the end fails: it and all later reads return zeros or nothing, remaining() is 0 and ok() is false. A decoder
// therefore checks ok() once per unit, not after every field. Unaligned access is safe. LEB128: DWARF 5, section 7.6.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include "base/bytes.h"

namespace flamewire {

constexpr std::endian byte_order(bool big_endian) { return big_endian ? std::endian::big : std::endian::little; }

// An unsigned number of 1 to 8 bytes.
inline std::uint64_t load_number(const std::byte* at, std::size_t size, std::endian order) {
    const auto load = [&]<class T>(T value) -> std::uint64_t {
        std::memcpy(&value, at, sizeof value);
        return order == std::endian::native ? value : std::byteswap(value);
    };
    if (size == 4) return load(std::uint32_t{});
    if (size == 8) return load(std::uint64_t{});
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < size; ++i)
        value = value << 8 | std::to_integer<std::uint64_t>(at[order == std::endian::big ? i : size - 1 - i]);
    return value;
}

class ByteReader {
public:
    explicit ByteReader(Bytes bytes, std::endian order = std::endian::native)
        : next_(bytes.data()), start_(next_), end_(next_ + bytes.size()), order_(order) {}

    std::uint8_t u8() { return take(1) ? std::to_integer<std::uint8_t>(next_[-1]) : std::uint8_t{0}; }
    std::uint16_t u16() { return fixed<std::uint16_t>(); }
    std::uint32_t u32() { return fixed<std::uint32_t>(); }
    std::uint64_t u64() { return fixed<std::uint64_t>(); }
    // An unsigned number of 1 to 8 bytes.
    std::uint64_t number(std::size_t size) { return take(size) ? load_number(next_ - size, size, order_) : 0; }

    // LEB128. Bits beyond the 64th are dropped.
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

    // The next `size` bytes. If there are fewer, returns none and ok() becomes false.
    Bytes bytes(std::uint64_t size) {
        if (!take(size)) return {};
        return {next_ - size, static_cast<std::size_t>(size)};
    }
    // Reads `count` numbers of 8 bytes into `out`, which replaces its contents.
    void words(std::uint64_t count, std::vector<std::uint64_t>& out) {
        out.clear();
        if (count > remaining() / 8) return fail();
        const Bytes all = bytes(count * 8);
        out.resize(static_cast<std::size_t>(count));
        if (!all.empty()) std::memcpy(out.data(), all.data(), all.size());
        if (order_ != std::endian::native)
            for (std::uint64_t& word : out) word = std::byteswap(word);
    }
    // The text up to a NUL, which is consumed too. Fails if there is no NUL.
    std::string_view c_string() {
        const std::string_view all = as_text(rest());
        const std::size_t end = all.find('\0');
        if (end == std::string_view::npos) {
            fail();
            return {};
        }
        skip(end + 1);
        return all.substr(0, end);
    }
    // As c_string(), but without a NUL the text extends to the end.
    std::string_view text() {
        const std::string_view all = as_text(rest());
        const std::string_view found = all.substr(0, all.find('\0'));
        skip(std::min(found.size() + 1, all.size()));
        return found;
    }

    void skip(std::uint64_t size) { (void)take(size); }
    // Forward only: fails if `position` is before the current one.
    void seek(std::size_t position) {
        if (position < this->position()) return fail();
        skip(position - this->position());
    }
    // Has the same effect as a read past the end.
    void fail() {
        ok_ = false;
        next_ = end_;
    }

    [[nodiscard]] bool ok() const { return ok_; }
    [[nodiscard]] bool at_end() const { return next_ == end_; }
    [[nodiscard]] std::size_t position() const { return static_cast<std::size_t>(next_ - start_); }
    [[nodiscard]] std::size_t remaining() const { return static_cast<std::size_t>(end_ - next_); }
    [[nodiscard]] Bytes rest() const { return {next_, remaining()}; }

private:
    template <class T>
    T fixed() {
        if (!take(sizeof(T))) return 0;
        T value;
        std::memcpy(&value, next_ - sizeof value, sizeof value);
        return order_ == std::endian::native ? value : std::byteswap(value);
    }
    bool take(std::uint64_t size) {
        if (size > remaining()) {
            fail();
            return false;
        }
        next_ += size;
        return true;
    }

    const std::byte *next_, *start_, *end_;
    std::endian order_;
    bool ok_ = true;
};

}  // namespace flamewire
