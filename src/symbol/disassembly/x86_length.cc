#include "symbol/disassembly/x86_length.h"

#include <cstdint>
#include <string_view>

namespace flamewire::symbol {
namespace {

constexpr std::size_t longest = 15;

enum class Map : std::uint8_t { one_byte, two_byte, map_38, map_3a, other };

// A character for each opcode: m: ModRM follows; b: 8-bit immediate; B: ModRM and 8-bit immediate; z: immediate of the
// operand size; Z: ModRM and such an immediate; .: no operands; x: invalid in 64-bit code. The others are explained
// below at their lines.
constexpr std::string_view one_byte =
    "mmmmbzxxmmmmbzxx"  // 00
    "mmmmbzxxmmmmbzxx"
    "mmmmbzxxmmmmbzxx"
    "mmmmbzxxmmmmbzxx"
    "xxxxxxxxxxxxxxxx"  // 40: REX, handled as a prefix
    "................"
    "xxxmxxxxzZbB...."  // 60
    "bbbbbbbbbbbbbbbb"
    "BZxBmmmmmmmmmmmm"  // 80
    "..........x....."
    "aaaa....bz......"  // a0: a is an address of 8 bytes
    "bbbbbbbbvvvvvvvv"  // b0: v is an immediate of up to 8 bytes
    "BBw.xxBZe.w..bx."  // c0: w 2 bytes, e 3 bytes
    "mmmmxxx.mmmmmmmm"
    "bbbbbbbbddxb...."   // e0: d is a displacement of 4 bytes
    "x.xx..tt......mm";  // f0: t has an immediate for some of its forms
constexpr std::string_view two_byte =
    "mmmmx.....x.xm.B"  // 00
    "mmmmmmmmmmmmmmmm"
    "mmmmxxxxmmmmmmmm"
    "........xxxxxxxx"
    "mmmmmmmmmmmmmmmm"  // 40
    "mmmmmmmmmmmmmmmm"
    "mmmmmmmmmmmmmmmm"
    "BBBBmmm.mmxxmmmm"  // 70
    "dddddddddddddddd"
    "mmmmmmmmmmmmmmmm"
    "...mBmxx...mBmmm"  // a0
    "mmmmmmmmmmBmmmmm"
    "mmBmBBBm........"  // c0
    "mmmmmmmmmmmmmmmm"
    "mmmmmmmmmmmmmmmm"
    "mmmmmmmmmmmmmmmm";

class Decoder {
public:
    explicit Decoder(Bytes code) : code_(code) {}

    std::size_t length() {
        prefixes();
        const unsigned opcode = take();
        if (opcode == 0xc5)
            vector_prefix(1);
        else if (opcode == 0xc4)
            vector_prefix(2);
        else if (opcode == 0x62)
            vector_prefix(3);
        else if (opcode == 0x0f)
            escaped();
        else
            operands(one_byte[opcode], opcode);
        return ok_ && at_ <= longest ? at_ : 0;
    }

private:
    unsigned take() {
        if (at_ >= code_.size()) {
            ok_ = false;
            return 0;
        }
        return std::to_integer<unsigned>(code_[at_++]);
    }
    void skip(std::size_t count) {
        if (count > code_.size() - at_)
            ok_ = false;
        else
            at_ += count;
    }

    void prefixes() {
        for (; at_ < code_.size() && at_ < longest; ++at_) {
            const auto byte = std::to_integer<unsigned>(code_[at_]);
            if (byte == 0x66)
                operand_16_ = true;
            else if (byte == 0x67)
                address_32_ = true;
            else if ((byte & 0xf0) == 0x40)
                wide_ = (byte & 8) != 0;
            else if (byte != 0xf0 && byte != 0xf2 && byte != 0xf3 && (byte & 0xe7) != 0x26 && (byte & 0xfe) != 0x64)
                return;
            if ((byte & 0xf0) != 0x40) wide_ = false;  // REX is only valid directly before the opcode
        }
    }

    // After VEX (2 or 3 bytes) and EVEX (4 bytes), every opcode except vzeroupper has ModRM.
    void vector_prefix(std::size_t bytes) {
        const unsigned map = bytes == 1 ? 1 : take() & (bytes == 2 ? 0x1f : 7);
        skip(bytes == 1 ? 1 : bytes - 1);
        const unsigned opcode = take();
        if (map == 0 || (map > 3 && bytes != 3) || map == 4 || map == 7) {
            ok_ = false;
            return;
        }
        if (map == 1 && opcode == 0x77 && bytes != 3) return;
        modrm();
        const char form = map == 1 ? two_byte[opcode] : 'm';
        if (map == 3 || (map == 1 && form == 'B')) skip(1);
    }

    void escaped() {
        const unsigned opcode = take();
        if (opcode == 0x38) {
            take();
            modrm();
        } else if (opcode == 0x3a) {
            take();
            modrm();
            skip(1);
        } else {
            operands(two_byte[opcode], opcode);
        }
    }

    void operands(char form, unsigned opcode) {
        const std::size_t immediate = operand_16_ && !wide_ ? 2 : 4;
        unsigned reg = 0;
        if (form == 'm' || form == 'B' || form == 'Z' || form == 't') reg = modrm();
        switch (form) {
            case 'b':
            case 'B': return skip(1);
            case 'z':
            case 'Z': return skip(immediate);
            case 'w': return skip(2);
            case 'e': return skip(3);
            case 'd': return skip(4);
            case 'a': return skip(address_32_ ? 4 : 8);
            case 'v': return skip(wide_ ? 8 : immediate);
            case 't': return skip(reg > 1 ? 0 : opcode == 0xf6 ? 1 : immediate);
            case 'x': ok_ = false; return;
            default: return;
        }
    }

    // Returns the reg field.
    unsigned modrm() {
        const unsigned byte = take();
        const unsigned mode = byte >> 6, base = byte & 7;
        if (mode == 3) return byte >> 3 & 7;
        unsigned low = base;
        if (base == 4) low = take() & 7;
        if (mode == 1)
            skip(1);
        else if (mode == 2 || low == 5)  // without a base, or relative to rip
            skip(4);
        return byte >> 3 & 7;
    }

    Bytes code_;
    std::size_t at_ = 0;
    bool ok_ = true, operand_16_ = false, address_32_ = false, wide_ = false;
};

}  // namespace

std::size_t x86_length(Bytes code) { return Decoder(code).length(); }

}  // namespace flamewire::symbol
