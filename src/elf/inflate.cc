#include "elf/inflate.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

namespace flamewire::elf {
namespace {

constexpr std::size_t longest_code = 15;
constexpr std::size_t literal_codes = 288, distance_codes = 32;
constexpr unsigned end_of_block = 256;

// Reads numbers starting at the lowest bit of each byte. Past the end, returns zeros and ok() is false.
class BitReader {
public:
    explicit BitReader(Bytes bytes) : bytes_(bytes) {}

    unsigned bit() {
        if (left_ == 0) {
            ok_ &= next_ < bytes_.size();
            byte_ = next_ < bytes_.size() ? std::to_integer<unsigned>(bytes_[next_++]) : 0;
            left_ = 8;
        }
        --left_;
        const unsigned bit = byte_ & 1;
        byte_ >>= 1;
        return bit;
    }
    unsigned bits(unsigned count) {
        unsigned value = 0;
        for (unsigned position = 0; position < count; ++position) value |= bit() << position;
        return value;
    }
    // Starts at the next byte boundary.
    Bytes whole_bytes(std::size_t count) {
        left_ = 0;
        if (bytes_.size() - next_ < count) {
            ok_ = false;
            return {};
        }
        next_ += count;
        return bytes_.subspan(next_ - count, count);
    }
    [[nodiscard]] bool ok() const { return ok_; }

private:
    Bytes bytes_;
    std::size_t next_ = 0;
    unsigned byte_ = 0, left_ = 0;
    bool ok_ = true;
};

// A Huffman code: its symbols sorted by length and value, and the number of symbols of each length.
class Code {
public:
    // Returns false if the code is oversubscribed, or incomplete with more than one symbol.
    bool build(std::span<const std::uint8_t> lengths) {
        counts_.fill(0);
        for (const std::uint8_t length : lengths) ++counts_[length];
        const std::size_t used = lengths.size() - counts_[0];
        counts_[0] = 0;
        int free = 1;
        std::array<std::uint16_t, longest_code + 1> next{};
        for (std::size_t length = 1; length <= longest_code; ++length) {
            free = 2 * free - counts_[length];
            if (free < 0) return false;
            if (length < longest_code) next[length + 1] = static_cast<std::uint16_t>(next[length] + counts_[length]);
        }
        for (std::size_t symbol = 0; symbol < lengths.size(); ++symbol)
            if (lengths[symbol] != 0) symbols_[next[lengths[symbol]]++] = static_cast<std::uint16_t>(symbol);
        return free == 0 || used <= 1;
    }
    // nullopt if no code starts with these bits.
    std::optional<unsigned> read(BitReader& in) const {
        unsigned code = 0, first = 0, index = 0;
        for (std::size_t length = 1; length <= longest_code; ++length) {
            code = code << 1 | in.bit();
            const unsigned count = counts_[length];
            if (code - first < count) return symbols_[index + (code - first)];
            index += count;
            first = (first + count) << 1;
        }
        return std::nullopt;
    }

private:
    std::array<std::uint16_t, longest_code + 1> counts_{};
    std::array<std::uint16_t, literal_codes> symbols_{};
};

struct Codes {
    Code literals, distances;
};

bool fixed_codes(Codes& codes) {
    std::array<std::uint8_t, literal_codes> lengths;
    const auto fill = [&](std::size_t begin, std::size_t end, std::uint8_t length) {
        std::fill(lengths.begin() + static_cast<std::ptrdiff_t>(begin),
                  lengths.begin() + static_cast<std::ptrdiff_t>(end), length);
    };
    fill(0, 144, 8);
    fill(144, 256, 9);
    fill(256, 280, 7);
    fill(280, literal_codes, 8);
    if (!codes.literals.build(lengths)) return false;
    fill(0, distance_codes, 5);
    return codes.distances.build(std::span(lengths).first(distance_codes));
}

// The stream contains the lengths of both codes, which are themselves Huffman-coded.
bool read_codes(BitReader& in, Codes& codes) {
    constexpr std::array<std::uint8_t, 19> order{16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15};
    const std::size_t literals = in.bits(5) + 257, distances = in.bits(5) + 1, given = in.bits(4) + 4;
    if (literals > 286 || distances > 30) return false;
    std::array<std::uint8_t, literal_codes + distance_codes> lengths{};
    for (std::size_t i = 0; i < given; ++i) lengths[order[i]] = static_cast<std::uint8_t>(in.bits(3));
    Code of_lengths;
    if (!of_lengths.build(std::span(lengths).first(order.size()))) return false;

    lengths.fill(0);
    for (std::size_t done = 0; done < literals + distances;) {
        const auto symbol = of_lengths.read(in);
        if (!symbol || !in.ok()) return false;
        if (*symbol < 16) {
            lengths[done++] = static_cast<std::uint8_t>(*symbol);
            continue;
        }
        if (*symbol == 16 && done == 0) return false;
        const std::uint8_t again = *symbol == 16 ? lengths[done - 1] : std::uint8_t{0};
        const std::size_t times = *symbol == 16 ? 3 + in.bits(2) : *symbol == 17 ? 3 + in.bits(3) : 11 + in.bits(7);
        if (times > literals + distances - done) return false;
        for (std::size_t i = 0; i < times; ++i) lengths[done++] = again;
    }
    return lengths[end_of_block] != 0 && codes.literals.build(std::span(lengths).first(literals)) &&
           codes.distances.build(std::span(lengths).subspan(literals, distances));
}

bool copy_stored(BitReader& in, std::size_t limit, std::string& out) {
    const Bytes head = in.whole_bytes(4);
    if (head.empty()) return false;
    const auto at = [&](std::size_t i) { return std::to_integer<std::size_t>(head[i]); };
    const std::size_t size = at(0) | at(1) << 8;
    if ((size ^ (at(2) | at(3) << 8)) != 0xffff || size > limit - out.size()) return false;
    const Bytes bytes = in.whole_bytes(size);
    out += as_text(bytes);
    return in.ok();
}

bool inflate_block(BitReader& in, const Codes& codes, std::size_t limit, std::string& out) {
    constexpr std::array<std::uint16_t, 29> lengths{3,  4,  5,  6,  7,  8,  9,  10, 11,  13,  15,  17,  19,  23, 27,
                                                    31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163, 195, 227, 258};
    constexpr std::array<std::uint8_t, 29> length_bits{0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2,
                                                       2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0};
    constexpr std::array<std::uint16_t, 30> distances{1,    2,    3,    4,    5,    7,    9,    13,    17,    25,
                                                      33,   49,   65,   97,   129,  193,  257,  385,   513,   769,
                                                      1025, 1537, 2049, 3073, 4097, 6145, 8193, 12289, 16385, 24577};
    while (in.ok()) {
        const auto symbol = codes.literals.read(in);
        if (!symbol) return false;
        if (*symbol == end_of_block) return in.ok();
        if (*symbol < end_of_block) {
            if (out.size() >= limit) return false;
            out.push_back(static_cast<char>(*symbol));
            continue;
        }
        const std::size_t which = *symbol - end_of_block - 1;
        if (which >= lengths.size()) return false;
        const std::size_t length = lengths[which] + in.bits(length_bits[which]);
        const auto far = codes.distances.read(in);
        if (!far || *far >= distances.size()) return false;
        const std::size_t distance = distances[*far] + in.bits(*far < 2 ? 0 : *far / 2 - 1);
        if (distance > out.size() || length > limit - out.size()) return false;
        // Copies byte by byte because source and destination may overlap.
        for (std::size_t i = 0; i < length; ++i) out.push_back(out[out.size() - distance]);
    }
    return false;
}

}  // namespace

std::optional<std::string> decompress_zlib(Bytes stream, std::size_t limit) {
    if (stream.size() < 2) return std::nullopt;
    const unsigned method = std::to_integer<unsigned>(stream[0]), flags = std::to_integer<unsigned>(stream[1]);
    constexpr unsigned deflate = 8, preset_dictionary = 0x20;
    if ((method & 0xf) != deflate || method >> 4 > 7 || (method << 8 | flags) % 31 != 0 ||
        (flags & preset_dictionary) != 0)
        return std::nullopt;

    BitReader in(stream.subspan(2));
    std::string out;
    for (bool last = false; !last;) {
        last = in.bit() != 0;
        bool whole = false;
        Codes codes;
        switch (in.bits(2)) {
            case 0: whole = copy_stored(in, limit, out); break;
            case 1: whole = fixed_codes(codes) && inflate_block(in, codes, limit, out); break;
            case 2: whole = read_codes(in, codes) && inflate_block(in, codes, limit, out); break;
            default: break;
        }
        if (!whole || !in.ok()) return std::nullopt;
    }
    return out;
}

}  // namespace flamewire::elf
