// EHABI instructions one by one, and the ways in which the index refers to them. Expected rows are computed by hand
// from the tables of the ABI. tests/oracle/unwind_offline compares whole libraries with readelf.
#include "unwind/tables/exidx.h"

#include <catch2/catch.hpp>

#include <initializer_list>
#include <map>
#include <vector>

using namespace flamewire::unwind;
using Kind = RegisterRule::Kind;

namespace {

constexpr std::uint64_t table_at = 0x20000, extra_at = 0x30000, function_at = 0x8000;
constexpr std::uint64_t inside = function_at + 0x10;

std::uint32_t prel31_to(std::uint64_t place, std::uint64_t target) {
    return static_cast<std::uint32_t>(target - place) & 0x7fffffffu;
}

// A small address space of words.
struct Image {
    std::map<std::uint64_t, std::uint32_t> words;
    std::uint64_t entries = 0;

    void entry(std::uint64_t function, std::uint32_t content) {
        const std::uint64_t place = table_at + entries++ * 8;
        words[place] = prel31_to(place, function);
        words[place + 4] = content;
    }
    void entry_at(std::uint64_t function, std::uint64_t target) {
        entry(function, prel31_to(table_at + entries * 8 + 4, target));
    }
    [[nodiscard]] std::optional<FrameRow> row(std::uint64_t address) const {
        const WordReader read = [this](std::uint64_t at) -> std::optional<std::uint32_t> {
            const auto found = words.find(at);
            if (found == words.end()) return {};
            return found->second;
        };
        return exidx_row(read, table_at, entries * 8, address);
    }
};

// The row of a function with these instructions, as long-form model 1 (padded with "finish").
std::optional<FrameRow> row_of(std::vector<unsigned> code) {
    Image image;
    image.entry_at(function_at, extra_at);
    while (code.size() < 2 || code.size() % 4 != 2) code.push_back(0xb0);
    const auto more = static_cast<unsigned>((code.size() - 2) / 4);
    image.words[extra_at] = 0x81000000u | more << 16 | code[0] << 8 | code[1];
    for (unsigned word = 0; word < more; ++word) {
        const std::size_t at = 2 + std::size_t{word} * 4;
        image.words[extra_at + 4 + word * 4] = code[at] << 24 | code[at + 1] << 16 | code[at + 2] << 8 | code[at + 3];
    }
    return image.row(inside);
}

std::int64_t cfa_of(std::vector<unsigned> code) {
    const auto row = row_of(std::move(code));
    REQUIRE(row);
    REQUIRE_FALSE(row->cfa_is_expression);
    REQUIRE(row->cfa_register == 13);
    return row->cfa_offset;
}

// Exactly these registers are at these offsets from the CFA, all others unchanged.
void check_saved(const FrameRow& row, const std::map<unsigned, std::int64_t>& saved) {
    for (unsigned number = 0; number < max_registers; ++number) {
        INFO("r" << number);
        const auto found = saved.find(number);
        const RegisterRule& rule = row.registers[number];
        CHECK(rule.kind == (found == saved.end() ? Kind::same : Kind::at_cfa));
        if (found != saved.end()) CHECK(rule.offset == found->second);
    }
}

std::string bytes(std::initializer_list<unsigned> list) {
    std::string text;
    for (const unsigned byte : list) text.push_back(static_cast<char>(byte));
    return text;
}

std::string expression(const FrameRow& row, const ExpressionRange& range) {
    return row.expressions.substr(range.begin, range.size);
}

}  // namespace

TEST_CASE("exidx: stack adjustments") {
    CHECK(cfa_of({0x00}) == 4);
    CHECK(cfa_of({0x3f}) == 256);
    CHECK(cfa_of({0x3f, 0x40}) == 252);
    CHECK(cfa_of({0x7f}) == -256);
    CHECK(cfa_of({0xb2, 0x00}) == 0x204);
    CHECK(cfa_of({0xb2, 0x04}) == 0x204 + 16);
    CHECK(cfa_of({0xb2, 0x81, 0x01}) == 0x204 + (129 << 2));
    CHECK(cfa_of({0xb0, 0x3f}) == 0);  // instructions after "finish" are not run
}

TEST_CASE("exidx: integer registers") {
    auto row = row_of({0xa8});  // pop {r4, lr}
    REQUIRE(row);
    CHECK(row->cfa_offset == 8);
    CHECK(row->return_column == 14);
    check_saved(*row, {{4, -8}, {14, -4}});

    row = row_of({0xa3});  // pop {r4-r7}
    REQUIRE(row);
    CHECK(row->cfa_offset == 16);
    check_saved(*row, {{4, -16}, {5, -12}, {6, -8}, {7, -4}});

    row = row_of({0xaf});  // pop {r4-r11, lr}
    REQUIRE(row);
    CHECK(row->cfa_offset == 36);
    check_saved(*row, {{4, -36}, {5, -32}, {6, -28}, {7, -24}, {8, -20}, {9, -16}, {10, -12}, {11, -8}, {14, -4}});

    row = row_of({0x84, 0x08});  // pop {r7, lr}: bit 3 of the low byte is r7, bit 2 of the high one r14
    REQUIRE(row);
    CHECK(row->cfa_offset == 8);
    check_saved(*row, {{7, -8}, {14, -4}});

    row = row_of({0x03, 0xb1, 0x0a, 0x84, 0x00, 0x01});  // locals, pop {r1, r3}, pop {lr}, 8 bytes of varargs
    REQUIRE(row);
    CHECK(row->cfa_offset == 16 + 8 + 4 + 8);
    check_saved(*row, {{1, -20}, {3, -16}, {14, -12}});

    row = row_of({0xa0, 0xa0});  // r4 twice: the last one counts
    REQUIRE(row);
    CHECK(row->cfa_offset == 8);
    check_saved(*row, {{4, -4}});
}

TEST_CASE("exidx: a restored pc wins over lr") {
    const auto row = row_of({0x8c, 0x00});  // pop {lr, pc}
    REQUIRE(row);
    CHECK(row->return_column == 15);
    CHECK_FALSE(row->signal_frame);
    check_saved(*row, {{14, -8}, {15, -4}});
}

TEST_CASE("exidx: all registers, as in libc's return from a signal") {
    const auto row = row_of({0x07, 0xb1, 0x0f, 0x8f, 0xff});  // vsp += 32, pop {r0-r3}, pop {r4-r15}
    REQUIRE(row);
    CHECK(row->cfa_register == 13);
    CHECK(row->cfa_offset == 32 + 64);
    CHECK(row->return_column == 15);
    CHECK(row->signal_frame);
    std::map<unsigned, std::int64_t> saved;
    for (unsigned number = 0; number < 16; ++number) saved[number] = -64 + 4 * std::int64_t{number};
    check_saved(*row, saved);
    // After a restored sp, the rest of the stack is unknown.
    CHECK_FALSE(row_of({0x8f, 0xff, 0x00}));
    CHECK_FALSE(row_of({0x8f, 0xff, 0xa8}));
    CHECK_FALSE(row_of({0x8f, 0xff, 0x97}));
}

TEST_CASE("exidx: vsp from another register") {
    auto row = row_of({0x97, 0x40, 0x84, 0x08});  // vsp = r7, -4, pop {r7, lr}
    REQUIRE(row);
    CHECK(row->cfa_register == 7);
    CHECK(row->cfa_offset == 4);
    check_saved(*row, {{7, -8}, {14, -4}});
    CHECK_FALSE(row_of({0x9d}));
    CHECK_FALSE(row_of({0x9f}));

    // Registers popped before vsp moved are on the old stack: DW_OP_breg13 +4.
    row = row_of({0x00, 0xa0, 0x9b, 0x84, 0x00});  // +4, pop {r4}, vsp = r11, pop {lr}
    REQUIRE(row);
    CHECK(row->cfa_register == 11);
    CHECK(row->cfa_offset == 4);
    CHECK(row->registers[14].kind == Kind::at_cfa);
    CHECK(row->registers[14].offset == -4);
    REQUIRE(row->registers[4].kind == Kind::at_expression);
    CHECK(expression(*row, row->registers[4].expression) == bytes({0x7d, 0x04}));

    // vsp = the popped r7: DW_OP_breg13 +0, DW_OP_deref, DW_OP_consts 8, DW_OP_plus.
    row = row_of({0x80, 0x08, 0x97, 0x00, 0x84, 0x00});  // pop {r7}, vsp = r7, +4, pop {lr}
    REQUIRE(row);
    REQUIRE(row->cfa_is_expression);
    CHECK(expression(*row, row->cfa_expression) == bytes({0x7d, 0x00, 0x06, 0x11, 0x08, 0x22}));
    CHECK(row->registers[14].kind == Kind::at_cfa);
    CHECK(row->registers[14].offset == -4);
    REQUIRE(row->registers[7].kind == Kind::at_expression);
    CHECK(expression(*row, row->registers[7].expression) == bytes({0x7d, 0x00}));
    // A row cannot express a second move of vsp.
    CHECK_FALSE(row_of({0x80, 0x08, 0x97, 0xa0, 0x94}));
}

TEST_CASE("exidx: registers that only move the stack") {
    CHECK(cfa_of({0xb3, 0x83}) == 4 * 8 + 4);  // D8 to D11 by FSTMFDX, which adds one word
    CHECK(cfa_of({0xb8}) == 12);
    CHECK(cfa_of({0xbf}) == 8 * 8 + 4);
    CHECK(cfa_of({0xc8, 0x01}) == 16);  // D16, D17
    CHECK(cfa_of({0xc9, 0x83}) == 32);  // D8 to D11
    CHECK(cfa_of({0xd0}) == 8);
    CHECK(cfa_of({0xd7}) == 64);
    CHECK(cfa_of({0xc0}) == 8);
    CHECK(cfa_of({0xc5}) == 48);
    CHECK(cfa_of({0xc6, 0x02}) == 24);
    CHECK(cfa_of({0xc7, 0x05}) == 8);  // two control registers of four bytes
    CHECK(cfa_of({0xb4}) == 4);        // return address authentication code
    CHECK(cfa_of({0xb5, 0xa8}) == 8);
}

TEST_CASE("exidx: spare instructions are refused") {
    for (const unsigned opcode : {0xb6u, 0xb7u, 0xcau, 0xcfu, 0xd8u, 0xe0u, 0xffu}) {
        INFO("opcode " << opcode);
        CHECK_FALSE(row_of({opcode}));
    }
    CHECK_FALSE(row_of({0xb1, 0x00}));
    CHECK_FALSE(row_of({0xb1, 0x10}));
    CHECK_FALSE(row_of({0xc7, 0x00}));
    CHECK_FALSE(row_of({0xc7, 0x10}));
    CHECK_FALSE(row_of({0xb2, 0x80, 0x80, 0x80, 0x80, 0x80, 0x00}));  // a ULEB128 larger than any stack
}

TEST_CASE("exidx: refuse to unwind and cannot unwind") {
    CHECK_FALSE(row_of({0x80, 0x00}));

    Image image;
    image.entry(function_at, 1);
    image.entry(function_at + 0x100, 0x80b0b0b0);
    CHECK_FALSE(image.row(function_at));
    CHECK_FALSE(image.row(inside));
    CHECK(image.row(inside + 0x100));
}

TEST_CASE("exidx: compact models and personality routines") {
    Image image;
    image.entry(0x8000, 0x80a8b0b0);  // inline, model 0: pop {r4, lr}
    image.entry_at(0x8100, 0x30000);  // model 0 out of line
    image.entry_at(0x8200, 0x30100);  // model 1, one more word
    image.entry_at(0x8300, 0x30200);  // model 2, no more words
    image.entry_at(0x8400, 0x30300);  // a language's own routine
    image.entry(0x8500, 0x8101b0b0);  // inline, but claims more words
    image.entry_at(0x8600, 0x30400);  // no such model
    image.entry_at(0x8700, 0x30500);  // not in the file
    image.entry_at(0x8800, 0x30600);  // its second word is not in the file
    image.words[0x30000] = 0x8001a8b0;
    image.words[0x30100] = 0x81013f3f;
    image.words[0x30104] = 0x3fa8b0b0;
    image.words[0x30200] = 0x8200a8b0;
    image.words[0x30300] = prel31_to(0x30300, 0x9000);
    image.words[0x30304] = 0x01010101;  // one more word; three times vsp += 8
    image.words[0x30308] = 0xa8b0b0b0;
    image.words[0x30400] = 0x8300b0b0;
    image.words[0x30600] = 0x81013f3f;

    CHECK(image.row(0x8010)->cfa_offset == 8);
    CHECK(image.row(0x8110)->cfa_offset == 8 + 8);
    CHECK(image.row(0x8210)->cfa_offset == 3 * 256 + 8);
    CHECK(image.row(0x8310)->cfa_offset == 8);
    CHECK(image.row(0x8410)->cfa_offset == 3 * 8 + 8);
    check_saved(*image.row(0x8410), {{4, -8}, {14, -4}});
    for (const std::uint64_t address : {0x8510, 0x8610, 0x8710, 0x8810}) {
        INFO(address);
        CHECK_FALSE(image.row(address));
    }
}

TEST_CASE("exidx: which entry covers an address, and from where") {
    Image image;
    image.entry(0x8000, 0x80a8b0b0);
    image.entry(0x9000, 0x80b0b0b0);
    image.entry(0xa000, 0x8000b0b0 | 0x3f0000);
    CHECK_FALSE(image.row(0x7fff));
    auto row = image.row(0x8fff);
    REQUIRE(row);
    CHECK(row->start == 0x8001);
    CHECK(row->end == 0x9000);
    CHECK(row->cfa_offset == 8);
    row = image.row(0x9002);
    REQUIRE(row);
    CHECK(row->end == 0xa000);
    CHECK(row->cfa_offset == 0);
    row = image.row(0xfffffffe);  // nothing follows the last entry
    REQUIRE(row);
    CHECK(row->end == 0x100000000);
    CHECK(row->cfa_offset == 256);
    CHECK_FALSE(image.row(0x100000010));
    image.entries = 0;
    CHECK_FALSE(image.row(0x8010));
}

TEST_CASE("exidx: nothing has been pushed at the first instruction") {
    Image image;
    image.entry(0x8000, 0x80a8b0b0);
    image.entry(0x9000, 0x80aab0b0);
    const auto row = image.row(0x9000);
    REQUIRE(row);
    CHECK(row->start == 0x9000);
    CHECK(row->end == 0x9001);
    CHECK(row->cfa_register == 13);
    CHECK(row->cfa_offset == 0);
    CHECK(row->return_column == 14);
    check_saved(*row, {});
}

TEST_CASE("exidx: offsets wrap at 32 bits and may point backwards") {
    // The index is below the code and above it. 31 signed bits reach both.
    Image image;
    image.entry(0x1000, 0x80a8b0b0);
    image.entry(0x50000, 0x80aab0b0);
    CHECK(image.words[table_at] == 0x7ffe1000);  // 0x1000 - 0x20000 in 31 bits
    CHECK(image.row(0x1004)->cfa_offset == 8);
    CHECK(image.row(0x50004)->cfa_offset == 16);
}
