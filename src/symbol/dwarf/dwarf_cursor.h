// A bounds-checked cursor over bytes of a DWARF section. A read past the end yields zeros and ok() false for ever
// after. Like ByteReader, but in the file's byte order, with LEB128, and small enough to be inlined into loops over
// millions of DIEs.
#pragma once

#include <cstdint>
#include <cstring>

#include "base/bytes.h"

namespace flamewire::symbol {

class DwarfCursor {
public:
    DwarfCursor(Bytes bytes, bool big_endian)
        : next_(bytes.data()), start_(bytes.data()), end_(bytes.data() + bytes.size()), big_endian_(big_endian) {}

    // An unsigned number of 1 to 8 bytes.
    std::uint64_t fixed(std::size_t size) {
        if (!take(size)) return 0;
        const std::byte* const first = next_ - size;
        std::uint64_t value = 0;
        for (std::size_t i = 0; i < size; ++i) {
            const std::size_t at = big_endian_ ? i : size - 1 - i;
            value = value << 8 | std::to_integer<std::uint64_t>(first[at]);
        }
        return value;
    }

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

    void skip(std::uint64_t size) { (void)take(size); }
    void skip_string() {
        const void* nul = ok_ && next_ != end_ ? std::memchr(next_, 0, remaining()) : nullptr;
        if (nul == nullptr)
            ok_ = false;
        else
            next_ = static_cast<const std::byte*>(nul) + 1;
    }
    // Forward only.
    void seek(std::size_t position) {
        if (position < this->position()) ok_ = false;
        skip(position - this->position());
    }

    [[nodiscard]] bool ok() const { return ok_; }
    [[nodiscard]] std::size_t position() const { return static_cast<std::size_t>(next_ - start_); }
    [[nodiscard]] std::size_t remaining() const { return static_cast<std::size_t>(end_ - next_); }
    void fail() { ok_ = false; }

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

}  // namespace flamewire::symbol
