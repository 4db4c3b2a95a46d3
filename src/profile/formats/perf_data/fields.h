// A bounds-checked cursor over numbers of either byte order, made to be fast: a read past the end gives zeros from then
// on, and ok() is false.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include "base/bytes.h"

namespace flamewire::profile::perf_data {

class Fields {
public:
    // `foreign`: of the byte order that is not this machine's.
    Fields(Bytes bytes, bool foreign) : at_(bytes.data()), end_(at_ + bytes.size()), foreign_(foreign) {}

    std::uint64_t u64() { return read<std::uint64_t>(); }
    std::uint32_t u32() { return read<std::uint32_t>(); }
    std::uint16_t u16() { return read<std::uint16_t>(); }
    std::uint8_t u8() { return read<std::uint8_t>(); }

    void skip(std::uint64_t count) { (void)bytes(count); }
    // The next `count` bytes; none, and not ok, when there are fewer.
    Bytes bytes(std::uint64_t count) {
        if (count > remaining()) {
            fail();
            return {};
        }
        const std::byte* const from = at_;
        at_ += count;
        return {from, static_cast<std::size_t>(count)};
    }
    // `count` numbers of 8 bytes into `out`, whatever was in it.
    void words(std::uint64_t count, std::vector<std::uint64_t>& out) {
        out.clear();
        if (count > remaining() / 8) return fail();
        out.resize(static_cast<std::size_t>(count));
        if (count != 0) std::memcpy(out.data(), at_, out.size() * 8);
        at_ += out.size() * 8;
        if (foreign_)
            for (std::uint64_t& word : out) word = std::byteswap(word);
    }
    // Up to a NUL, which need not be there; the cursor stands behind it.
    std::string_view text() {
        const std::string_view rest(reinterpret_cast<const char*>(at_), remaining());
        const std::string_view found = rest.substr(0, rest.find('\0'));
        at_ += std::min(found.size() + 1, rest.size());
        return found;
    }

    [[nodiscard]] std::size_t remaining() const { return static_cast<std::size_t>(end_ - at_); }
    [[nodiscard]] bool ok() const { return ok_; }

private:
    template <class T>
    T read() {
        if (remaining() < sizeof(T)) {
            fail();
            return 0;
        }
        T value;
        std::memcpy(&value, at_, sizeof value);
        at_ += sizeof value;
        return foreign_ ? std::byteswap(value) : value;
    }
    void fail() {
        ok_ = false;
        at_ = end_;
    }

    const std::byte* at_;
    const std::byte* end_;
    bool foreign_;
    bool ok_ = true;
};

}  // namespace flamewire::profile::perf_data
