#include "elf/xz.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <memory>

#include "base/byte_reader.h"

namespace flamewire::elf {
namespace {

// The probability that a bit is 0, in units of 2^-11, adapted to the bits decoded so far.
using Probability = std::uint16_t;
constexpr Probability even = 1024;

template <std::size_t size>
using Probabilities = std::array<Probability, size>;

class RangeDecoder {
public:
    // Returns false if the chunk is too short or does not start with 0.
    bool start(Bytes chunk) {
        chunk_ = chunk;
        at_ = 0;
        range_ = ~std::uint32_t{0};
        code_ = 0;
        if (next() != 0) return false;
        for (int byte = 0; byte < 4; ++byte) code_ = code_ << 8 | next();
        return ok();
    }
    // Reads past the end of the chunk return zeros.
    [[nodiscard]] bool ok() const { return at_ <= chunk_.size(); }
    [[nodiscard]] bool is_finished() const { return at_ == chunk_.size() && code_ == 0; }

    unsigned bit(Probability& zero) {
        constexpr unsigned bits = 11, speed = 5;
        const std::uint32_t bound = (range_ >> bits) * zero;
        unsigned result = 0;
        if (code_ < bound) {
            range_ = bound;
            zero = static_cast<Probability>(zero + (((1u << bits) - zero) >> speed));
        } else {
            code_ -= bound;
            range_ -= bound;
            zero = static_cast<Probability>(zero - (zero >> speed));
            result = 1;
        }
        normalize();
        return result;
    }
    unsigned equal_bits(unsigned count) {
        unsigned result = 0;
        for (; count > 0; --count) {
            range_ >>= 1;
            const bool one = code_ >= range_;
            if (one) code_ -= range_;
            result = result << 1 | (one ? 1u : 0u);
            normalize();
        }
        return result;
    }
    // Decodes `count` bits, highest first, each with its own probability per prefix. `tree` has 2^count entries.
    unsigned tree(Probability* tree, unsigned count) {
        unsigned symbol = 1;
        for (unsigned left = count; left > 0; --left) symbol = symbol << 1 | bit(tree[symbol]);
        return symbol - (1u << count);
    }
    unsigned reverse_tree(Probability* tree, unsigned count) {
        unsigned symbol = 1, result = 0;
        for (unsigned position = 0; position < count; ++position) {
            const unsigned one = bit(tree[symbol]);
            symbol = symbol << 1 | one;
            result |= one << position;
        }
        return result;
    }

private:
    std::uint32_t next() {
        const std::size_t at = at_++;
        return at < chunk_.size() ? std::to_integer<std::uint32_t>(chunk_[at]) : 0;
    }
    void normalize() {
        constexpr std::uint32_t low = 1u << 24;
        if (range_ >= low) return;
        range_ <<= 8;
        code_ = code_ << 8 | next();
    }

    Bytes chunk_;
    std::size_t at_ = 0;
    std::uint32_t range_ = 0, code_ = 0;
};

constexpr std::size_t states = 12, most_position_states = 16, length_states = 4;
constexpr unsigned shortest_match = 2;

struct LengthModel {
    Probability beyond_low, beyond_middle;
    std::array<Probabilities<8>, most_position_states> low, middle;
    Probabilities<256> high;

    unsigned decode(RangeDecoder& range, std::size_t position_state) {
        if (range.bit(beyond_low) == 0) return range.tree(low[position_state].data(), 3);
        if (range.bit(beyond_middle) == 0) return 8 + range.tree(middle[position_state].data(), 3);
        return 16 + range.tree(high.data(), 8);
    }
};

struct Model {
    std::array<Probabilities<most_position_states>, states> is_match, is_long_repeat0;
    Probabilities<states> is_repeat, is_not_repeat0, is_not_repeat1, is_not_repeat2;
    std::array<Probabilities<64>, length_states> distance_slot;
    Probabilities<128> distance_middle;  // slots 4 to 13, each from its base
    Probabilities<16> distance_low;
    LengthModel match_length, repeat_length;
    std::array<Probability, 0x300 << 4> literal;  // lc + lp is at most 4

    void reset() {
        static_assert(sizeof(Model) % sizeof(Probability) == 0);
        auto* const first = reinterpret_cast<Probability*>(this);
        std::fill(first, first + sizeof(Model) / sizeof(Probability), even);
    }
};

// LZMA2: a sequence of stored or LZMA-compressed chunks. They share the output as their dictionary.
class Lzma2 {
public:
    Lzma2(std::string& out, std::size_t limit) : out_(out), limit_(limit), dictionary_(out.size()) {}

    // Decodes up to the end marker. Returns false if the data is damaged.
    bool decode(ByteReader& in) {
        for (;;) {
            const auto control = in.u8();
            if (!in.ok()) return false;
            if (control == 0) return true;
            if (control >= 0x80 ? !compressed_chunk(in, control) : !stored_chunk(in, control)) return false;
        }
    }

private:
    bool has_room(std::size_t size) const { return size <= limit_ - out_.size(); }

    bool stored_chunk(ByteReader& in, std::uint8_t control) {
        constexpr std::uint8_t with_new_dictionary = 1, without = 2;
        if (control > without) return false;
        if (control == with_new_dictionary) start_dictionary();
        const std::size_t size = std::size_t{in.u16()} + 1;
        if (!has_dictionary_ || !has_room(size)) return false;
        out_.append(as_text(in.bytes(size)));
        return in.ok();
    }

    bool compressed_chunk(ByteReader& in, std::uint8_t control) {
        const std::size_t size = (std::size_t{control & 0x1fu} << 16) + in.u16() + 1;
        const std::size_t packed = std::size_t{in.u16()} + 1;
        enum : unsigned { keep_state, reset_state, new_properties, new_dictionary };
        const unsigned reset = control >> 5 & 3;
        if (reset == new_dictionary) start_dictionary();
        if (reset >= new_properties && !set_properties(in.u8())) return false;
        if (reset >= reset_state && has_properties_) reset_model();
        if (!has_dictionary_ || !has_properties_ || !model_ || !has_room(size)) return false;
        if (!range_.start(in.bytes(packed))) return false;
        const std::size_t end = out_.size() + size;
        while (out_.size() < end)
            if (!symbol(end) || !range_.ok()) return false;
        return range_.is_finished();
    }

    void start_dictionary() {
        dictionary_ = out_.size();
        has_dictionary_ = true;
    }
    bool set_properties(std::uint8_t properties) {
        constexpr unsigned literal_contexts = 9, literal_positions = 5, positions = 5;
        if (properties >= literal_contexts * literal_positions * positions) return false;
        literal_context_bits_ = properties % literal_contexts;
        literal_position_bits_ = properties / literal_contexts % literal_positions;
        position_bits_ = properties / (literal_contexts * literal_positions);
        has_properties_ = literal_context_bits_ + literal_position_bits_ <= 4;
        return has_properties_;
    }
    void reset_model() {
        if (!model_) model_ = std::make_unique<Model>();
        model_->reset();
        state_ = 0;
        repeats_ = {};
    }

    [[nodiscard]] std::size_t position() const { return out_.size() - dictionary_; }
    [[nodiscard]] std::uint8_t byte_back(std::size_t distance) const {
        return static_cast<std::uint8_t>(out_[out_.size() - distance - 1]);
    }

    // Decodes one literal or match.
    bool symbol(std::size_t end) {
        const std::size_t position_state = position() & ((std::size_t{1} << position_bits_) - 1);
        Model& model = *model_;
        if (range_.bit(model.is_match[state_][position_state]) == 0) {
            literal();
            return true;
        }
        unsigned length = 0;
        if (range_.bit(model.is_repeat[state_]) == 0) {
            length = model.match_length.decode(range_, position_state);
            repeats_ = {distance(length), repeats_[0], repeats_[1], repeats_[2]};
            state_ = state_ < 7 ? 7 : 10;
        } else if (!choose_repeat(position_state)) {
            state_ = state_ < 7 ? 9 : 11;
            return copy(1, end);
        } else {
            length = model.repeat_length.decode(range_, position_state);
            state_ = state_ < 7 ? 8 : 11;
        }
        return copy(length + shortest_match, end);
    }

    void literal() {
        const std::size_t previous = position() == 0 ? 0 : byte_back(0);
        const std::size_t low_position = position() & ((std::size_t{1} << literal_position_bits_) - 1);
        const std::size_t context = (low_position << literal_context_bits_) + (previous >> (8 - literal_context_bits_));
        Probability* const probabilities = &model_->literal[0x300 * context];
        unsigned value = 1;
        if (state_ >= 7 && repeats_[0] < position()) {
            // After a match, the byte at the last distance predicts the literal until a bit differs.
            unsigned expected = byte_back(repeats_[0]);
            while (value < 0x100) {
                const unsigned expected_bit = expected >> 7 & 1;
                expected <<= 1;
                const unsigned bit = range_.bit(probabilities[((1 + expected_bit) << 8) + value]);
                value = value << 1 | bit;
                if (bit != expected_bit) break;
            }
        }
        while (value < 0x100) value = value << 1 | range_.bit(probabilities[value]);
        out_.push_back(static_cast<char>(value));
        state_ = state_ < 4 ? 0 : state_ < 10 ? state_ - 3 : state_ - 6;
    }

    // Selects which earlier distance is repeated. Returns false for one byte at the latest distance.
    bool choose_repeat(std::size_t position_state) {
        Model& model = *model_;
        if (range_.bit(model.is_not_repeat0[state_]) == 0)
            return range_.bit(model.is_long_repeat0[state_][position_state]) != 0;
        std::size_t chosen = 1;
        if (range_.bit(model.is_not_repeat1[state_]) != 0) chosen = 2 + range_.bit(model.is_not_repeat2[state_]);
        std::rotate(repeats_.begin(), repeats_.begin() + static_cast<std::ptrdiff_t>(chosen),
                    repeats_.begin() + static_cast<std::ptrdiff_t>(chosen) + 1);
        return true;
    }

    std::uint32_t distance(unsigned length) {
        Model& model = *model_;
        const unsigned slot =
            range_.tree(model.distance_slot[std::min<std::size_t>(length, length_states - 1)].data(), 6);
        if (slot < 4) return slot;
        const unsigned bits = (slot >> 1) - 1;
        const std::uint32_t base = (2 | (slot & 1)) << bits;
        constexpr unsigned first_far_slot = 14, low_bits = 4;
        if (slot < first_far_slot) return base + range_.reverse_tree(&model.distance_middle[base - slot], bits);
        const std::uint32_t high = range_.equal_bits(bits - low_bits) << low_bits;
        return base + high + range_.reverse_tree(model.distance_low.data(), low_bits);
    }

    bool copy(std::size_t length, std::size_t end) {
        if (repeats_[0] >= position() || length > end - out_.size()) return false;
        for (; length > 0; --length) out_.push_back(static_cast<char>(byte_back(repeats_[0])));
        return true;
    }

    std::string& out_;
    std::size_t limit_;
    std::size_t dictionary_;  // its start in the output
    bool has_dictionary_ = false, has_properties_ = false;
    unsigned literal_context_bits_ = 0, literal_position_bits_ = 0, position_bits_ = 0;
    RangeDecoder range_;
    std::unique_ptr<Model> model_;
    unsigned state_ = 0;
    std::array<std::uint32_t, 4> repeats_{};
};

// 7 bits per byte, lowest first.
std::uint64_t read_number(ByteReader& in) {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 63; shift += 7) {
        const auto byte = in.u8();
        value |= std::uint64_t{byte & 0x7fu} << shift;
        if ((byte & 0x80) == 0) return value;
    }
    in.fail();  // longer than any valid number: the data is damaged
    return 0;
}

// A block header. Only one property matters: LZMA2 must be the only filter.
bool read_block_header(ByteReader& in, std::uint8_t size) {
    const std::size_t rest = std::size_t{size} * 4 + 3;  // of (size + 1) * 4 bytes, one is already read
    ByteReader header(in.bytes(rest));
    const auto flags = header.u8();
    constexpr std::uint8_t more_filters = 3, reserved = 0x3c, has_packed_size = 0x40, has_size = 0x80;
    if ((flags & (more_filters | reserved)) != 0) return false;
    if ((flags & has_packed_size) != 0) (void)read_number(header);
    if ((flags & has_size) != 0) (void)read_number(header);
    constexpr std::uint64_t lzma2 = 0x21;
    const std::uint64_t filter = read_number(header), properties_size = read_number(header);
    return filter == lzma2 && properties_size == 1 && header.ok();
}

}  // namespace

std::optional<std::string> decompress_xz(Bytes stream, std::size_t limit) {
    constexpr std::uint64_t magic = 0x005a587a37fd;  // 6 bytes
    ByteReader in(stream, std::endian::big);
    std::uint64_t start = 0;
    if (!read_at(stream, 0, start)) return std::nullopt;
    if constexpr (std::endian::native == std::endian::big) start = std::byteswap(start);
    if ((start & 0xffffffffffff) != magic) return std::nullopt;
    in.skip(6);
    const auto flags = in.u16();
    if (flags > 0x0f) return std::nullopt;
    // None, CRC32, CRC64, SHA-256 and reserved IDs: 0, 4, 8, 16, 32 or 64 bytes. Three consecutive IDs share a size.
    const std::size_t check_size = flags == 0 ? 0 : std::size_t{4} << (flags - 1u) / 3u;
    in.skip(4);

    std::string out;
    for (;;) {
        const auto size = in.u8();
        if (!in.ok()) return std::nullopt;
        if (size == 0) return out;  // the index follows
        if (!read_block_header(in, size)) return std::nullopt;
        Lzma2 block(out, limit);
        if (!block.decode(in)) return std::nullopt;
        in.skip((4 - in.position() % 4) % 4);
        in.skip(check_size);
    }
}

}  // namespace flamewire::elf
