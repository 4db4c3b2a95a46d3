// Bodies of records in either byte order, written by hand from linux/perf_event.h.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include "base/bytes.h"

namespace flamewire::perf {

class RecordBody {
public:
    explicit RecordBody(std::endian order) : order_(order) {}

    RecordBody& u8(std::uint8_t value) { return number(value); }
    RecordBody& u16(std::uint16_t value) { return number(value); }
    RecordBody& u32(std::uint32_t value) { return number(value); }
    RecordBody& u64(std::uint64_t value) { return number(value); }
    RecordBody& text(std::string_view text) {  // with NUL, padded to 8
        const auto* const first = reinterpret_cast<const std::byte*>(text.data());
        bytes_.insert(bytes_.end(), first, first + text.size());
        bytes_.resize(bytes_.size() + 8 - text.size() % 8);
        return *this;
    }
    // A trailer with tid, time, cpu and identifier.
    RecordBody& trailer(std::uint32_t tid, std::uint64_t time, std::uint32_t cpu, std::uint64_t id) {
        return u32(1).u32(tid).u64(time).u32(cpu).u32(0).u64(id);
    }
    // Valid while this object lives. `shift`: the distance from the previous 8-byte boundary.
    Bytes bytes(std::size_t shift = 0) {
        words_.assign(bytes_.size() / 8 + 2, 0x5555'5555'5555'5555);
        std::byte* const first = std::as_writable_bytes(std::span(words_)).data() + shift;
        if (!bytes_.empty()) std::memcpy(first, bytes_.data(), bytes_.size());
        return {first, bytes_.size()};
    }

private:
    template <class T>
    RecordBody& number(T value) {
        for (std::size_t i = 0; i < sizeof value; ++i) {
            const std::size_t place = order_ == std::endian::little ? i : sizeof value - 1 - i;
            bytes_.push_back(static_cast<std::byte>(std::uint64_t{value} >> (8 * place) & 0xff));
        }
        return *this;
    }

    std::endian order_;
    std::vector<std::byte> bytes_;
    std::vector<std::uint64_t> words_;
};

}  // namespace flamewire::perf
