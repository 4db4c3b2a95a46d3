// Words of a copied stack, in the byte order of the target.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>

#include "unwind/frame/stop_reason.h"
#include "unwind/walk/unwinder.h"

namespace flamewire::unwind {

// Up to 8 bytes as a number.
std::uint64_t number_of(std::span<const std::byte> bytes, bool big_endian);

class StackView {
public:
    StackView(const StackCopy& copy, std::size_t word_size, bool big_endian)
        : copy_(copy),
          words_(copy.bytes.size() >= word_size ? copy.bytes.size() - word_size + 1 : 0),
          word_size_(word_size),
          big_endian_(big_endian) {}

    // Runs for nearly every frame. Returns false if the word is not in the copy.
    [[nodiscard, gnu::always_inline]] bool load_word(std::uint64_t address, std::uint64_t& value) const {
        const std::uint64_t offset = address - copy_.address;
        if (offset >= words_) return false;
        const bool swap = big_endian_ != (std::endian::native == std::endian::big);
        if (word_size_ == 8) {
            std::memcpy(&value, copy_.bytes.data() + offset, sizeof value);
            if (swap) value = std::byteswap(value);
            return true;
        }
        std::uint32_t half = 0;
        std::memcpy(&half, copy_.bytes.data() + offset, sizeof half);
        value = swap ? std::byteswap(half) : half;
        return true;
    }
    // nullopt: `size` bytes are not in the copy, or they are more than 8.
    [[nodiscard]] std::optional<std::uint64_t> read(std::uint64_t address, std::size_t size) const;
    // Why a read at `address` failed.
    [[nodiscard]] StopReason reason_for(std::uint64_t address) const;

private:
    StackCopy copy_;
    std::uint64_t words_;  // addresses in the copy that start a complete word
    std::size_t word_size_;
    bool big_endian_;
};

}  // namespace flamewire::unwind
