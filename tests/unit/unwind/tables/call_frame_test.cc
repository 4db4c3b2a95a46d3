// Rows of hand-assembled call frame instructions. The expected rows are derived by hand from DWARF 5, section 6.4.
#include "unwind/tables/call_frame.h"

#include <catch2/catch.hpp>

#include <initializer_list>
#include <string>

namespace flamewire::unwind {
namespace {

using Kind = RegisterRule::Kind;

std::string bytes(std::initializer_list<int> values) {
    std::string out;
    for (const int value : values) out.push_back(static_cast<char>(value));
    return out;
}

// x86-64's usual common entry: CFA = rsp + 8, the return address (16) at CFA - 8.
const std::string usual_initial = bytes({0x0c, 7, 8, 0x90, 1});

struct Function {
    std::string initial = usual_initial;
    std::string instructions{};
    Arch arch = Arch::x86_64;
    bool big_endian = false;
    CommonEntry common{.data_alignment = -8, .return_column = 16};
    std::uint64_t start = 0x1000, end = 0x1100, instructions_address = 0;
    TableWork work{};

    std::optional<FrameRow> at(std::uint64_t address) {
        common.instructions = as_bytes_view(initial);
        const FrameDescription description{start, end, as_bytes_view(instructions), instructions_address};
        return run_call_frame(common, description, address, arch, big_endian, work);
    }
};

RegisterRule at_cfa(std::int64_t offset) { return {.kind = Kind::at_cfa, .offset = offset}; }

std::string_view expression_of(const FrameRow& row, const ExpressionRange& range) {
    return std::string_view(row.expressions).substr(range.begin, range.size);
}

TEST_CASE("push rbp; mov rsp, rbp; …; leave") {
    // 1000 push rbp | 1001 mov rbp, rsp | 1004 body | 1050 ret
    Function function{.instructions = bytes({0x41, 0x0e, 16, 0x86, 2, 0x43, 0x0d, 6, 0x02, 0x4c, 0x0c, 7, 8})};
    const auto entry = function.at(0x1000);
    REQUIRE(entry);
    CHECK(entry->start == 0x1000);
    CHECK(entry->end == 0x1001);
    CHECK(entry->cfa_register == 7);
    CHECK(entry->cfa_offset == 8);
    CHECK(entry->registers[16] == at_cfa(-8));
    CHECK(entry->registers[6] == RegisterRule{});
    CHECK(entry->return_column == 16);
    CHECK_FALSE(entry->signal_frame);

    const auto pushed = function.at(0x1003);
    REQUIRE(pushed);
    CHECK(pushed->start == 0x1001);
    CHECK(pushed->end == 0x1004);
    CHECK(pushed->cfa_register == 7);
    CHECK(pushed->cfa_offset == 16);
    CHECK(pushed->registers[6] == at_cfa(-16));

    const auto body = function.at(0x1004);
    REQUIRE(body);
    CHECK(body->start == 0x1004);
    CHECK(body->end == 0x1050);
    CHECK(body->cfa_register == 6);
    CHECK(body->cfa_offset == 16);

    const auto left = function.at(0x10ff);
    REQUIRE(left);
    CHECK(left->start == 0x1050);
    CHECK(left->end == 0x1100);
    CHECK(left->cfa_register == 7);
    CHECK(left->cfa_offset == 8);

    CHECK_FALSE(function.at(0xfff));
    CHECK_FALSE(function.at(0x1100));
}

TEST_CASE("remember and restore bring back the CFA, the registers and the signature") {
    // def_cfa_offset 32, rbx at CFA-16; remember; advance 16; def_cfa rbp 64, rbx same, rbp undefined; advance 16; restore.
    Function function{.instructions =
                          bytes({0x0e, 32, 0x83, 2, 0x0a, 0x50, 0x0c, 6, 64, 0x08, 3, 0x07, 6, 0x50, 0x0b})};
    const auto middle = function.at(0x1010);
    REQUIRE(middle);
    CHECK(middle->cfa_register == 6);
    CHECK(middle->cfa_offset == 64);
    CHECK(middle->registers[3].kind == Kind::same);
    CHECK(middle->registers[6].kind == Kind::undefined);
    const auto back = function.at(0x1020);
    REQUIRE(back);
    CHECK(back->start == 0x1020);
    CHECK(back->end == 0x1100);
    CHECK(back->cfa_register == 7);
    CHECK(back->cfa_offset == 32);
    CHECK(back->registers[3] == at_cfa(-16));
    CHECK(back->registers[6].kind == Kind::same);

    Function sign{.initial = bytes({0x0c, 31, 0}),
                  .instructions = bytes({0x41, 0x2d, 0x0a, 0x41, 0x2d, 0x41, 0x0b}),
                  .arch = Arch::aarch64,
                  .common = {.code_alignment = 4, .data_alignment = -8, .return_column = 30}};
    CHECK_FALSE(sign.at(0x1000)->return_signed);
    CHECK(sign.at(0x1004)->return_signed);
    CHECK_FALSE(sign.at(0x1008)->return_signed);
    CHECK(sign.at(0x100c)->return_signed);
}

TEST_CASE("nested remembered states, and their limit") {
    Function function;
    for (int i = 0; i < 64; ++i) {
        function.instructions += bytes({0x0a, 0x0e, 16 + i});
    }
    for (int i = 0; i < 64; ++i) function.instructions += bytes({0x41, 0x0b});
    for (std::uint64_t i = 0; i < 64; ++i) {
        const auto row = function.at(0x1000 + i);
        REQUIRE(row);
        CHECK(row->cfa_offset == static_cast<std::int64_t>(i == 0 ? 79 : 79 - i));
    }
    CHECK(function.at(0x1040)->cfa_offset == 8);
    function.instructions = std::string(65, 0x0a);
    CHECK_FALSE(function.at(0x1000));
    function.instructions = bytes({0x0b});
    CHECK_FALSE(function.at(0x1000));
}

TEST_CASE("restore takes the common entry's rule") {
    Function function{.initial = usual_initial + bytes({0x83, 3}),
                      .instructions = bytes({0x83, 2, 0x07, 16, 0x41, 0xc3, 0x06, 16, 0x86, 5, 0x41, 0xc6})};
    CHECK(function.at(0x1000)->registers[3] == at_cfa(-16));
    CHECK(function.at(0x1000)->registers[16].kind == Kind::undefined);
    CHECK(function.at(0x1001)->registers[3] == at_cfa(-24));
    CHECK(function.at(0x1001)->registers[16] == at_cfa(-8));
    CHECK(function.at(0x1001)->registers[6] == at_cfa(-40));
    CHECK(function.at(0x1002)->registers[6].kind == Kind::same);
    function.initial = usual_initial + bytes({0xc3});
    CHECK_FALSE(function.at(0x1000));
}

TEST_CASE("every form of a register rule") {
    Function function{.instructions = bytes({
                          0x05, 0,    0x80, 0x01,     // offset_extended rax, 128: CFA - 1024
                          0x11, 1,    0x7e,           // offset_extended_sf rdx, -2: CFA + 16
                          0x2f, 2,    3,              // negative_offset_extended rcx, 3: CFA + 24
                          0x14, 3,    4,              // val_offset rbx, 4: is CFA - 32
                          0x15, 4,    0x7b,           // val_offset_sf rsi, -5: is CFA + 40
                          0x09, 5,    12,             // register rdi, r12
                          0x10, 6,    2,    0x77, 8,  // expression rbp: breg7 8
                          0x16, 8,    1,    0x30,     // val_expression r8: lit0
                          0x07, 9,    0x08, 10,       // undefined r9, same_value r10
                          0x2e, 0xff, 0x01,           // args_size 255
                      })};
    const auto row = function.at(0x1000);
    REQUIRE(row);
    CHECK(row->registers[0] == at_cfa(-1024));
    CHECK(row->registers[1] == at_cfa(16));
    CHECK(row->registers[2] == at_cfa(24));
    CHECK(row->registers[3] == RegisterRule{.kind = Kind::cfa_plus, .offset = -32});
    CHECK(row->registers[4] == RegisterRule{.kind = Kind::cfa_plus, .offset = 40});
    CHECK(row->registers[5] == RegisterRule{.kind = Kind::in_register, .reg = 12});
    CHECK(row->registers[6].kind == Kind::at_expression);
    CHECK(expression_of(*row, row->registers[6].expression) == bytes({0x77, 8}));
    CHECK(row->registers[8].kind == Kind::is_expression);
    CHECK(expression_of(*row, row->registers[8].expression) == bytes({0x30}));
    CHECK(row->registers[9].kind == Kind::undefined);
    CHECK(row->registers[10].kind == Kind::same);
    CHECK(row->cfa_offset == 8);
}

TEST_CASE("every form of the CFA rule") {
    Function function{.instructions = bytes({0x41, 0x12, 6,    0x7e,              // 1001 def_cfa_sf rbp, -2: rbp + 16
                                             0x41, 0x13, 0x7c,                    // 1002 def_cfa_offset_sf -4: rbp + 32
                                             0x41, 0x0d, 10,                      // 1003 def_cfa_register r10: r10 + 32
                                             0x41, 0x0f, 3,    0x76, 0x78, 0x06,  // 1004 expression: breg6 -8; deref
                                             0x41, 0x0c, 7,    0x88, 0x01})};     // 1005 rsp + 136
    CHECK(function.at(0x1001)->cfa_register == 6);
    CHECK(function.at(0x1001)->cfa_offset == 16);
    CHECK(function.at(0x1002)->cfa_offset == 32);
    CHECK(function.at(0x1003)->cfa_register == 10);
    CHECK(function.at(0x1003)->cfa_offset == 32);
    const auto row = function.at(0x1004);
    REQUIRE(row);
    CHECK(row->cfa_is_expression);
    CHECK(expression_of(*row, row->cfa_expression) == bytes({0x76, 0x78, 0x06}));
    CHECK_FALSE(function.at(0x1005)->cfa_is_expression);
    CHECK(function.at(0x1005)->cfa_offset == 136);
}

TEST_CASE("expressions of remembered rows stay right when others are added") {
    Function function{.instructions = bytes({0x10, 6, 1, 0x31, 0x0a, 0x10, 6, 2, 0x32, 0x33, 0x41, 0x0b})};
    const auto first = function.at(0x1000);
    REQUIRE(first);
    CHECK(expression_of(*first, first->registers[6].expression) == bytes({0x32, 0x33}));
    const auto second = function.at(0x1001);
    REQUIRE(second);
    CHECK(expression_of(*second, second->registers[6].expression) == bytes({0x31}));
}

TEST_CASE("locations advance by every size, in the target's byte order") {
    const auto starts = [](Function function, std::initializer_list<std::uint64_t> expected) {
        for (const std::uint64_t start : expected) {
            const auto row = function.at(start);
            REQUIRE(row);
            CHECK(row->start == start);
        }
    };
    Function little{.instructions = bytes(
                        {0x02, 0x80, 0x03, 0x00, 0x02, 0x04, 0x00, 0x00, 0x03, 0x00, 0x1d, 0, 0, 0, 1, 0, 0, 0, 0}),
                    .end = 0x10000000};
    starts(little, {0x1000, 0x1080, 0x1280, 0x31280, 0x1031280});
    Function big{.instructions = bytes({0x02, 0x80, 0x03, 0x02, 0x00, 0x04, 0x00, 0x03, 0x00, 0x00}),
                 .big_endian = true,
                 .common = {.code_alignment = 4, .data_alignment = -8, .return_column = 16},
                 .end = 0x10000000};
    starts(big, {0x1000, 0x1200, 0x1a00, 0xc1a00});
    Function absolute{.instructions = bytes({0x01, 0x40, 0x10, 0, 0, 0, 0, 0, 0})};
    starts(absolute, {0x1000, 0x1040});
    // pcrel, sdata4: the operand is at 0x5001 and contains -0x3fd1.
    Function relative{.instructions = bytes({0x01, 0x2f, 0xc0, 0xff, 0xff}),
                      .common = {.data_alignment = -8, .return_column = 16, .fde_encoding = 0x1b},
                      .instructions_address = 0x5000};
    starts(relative, {0x1000, 0x1030});
}

TEST_CASE("a row after the function's end is ignored") {
    Function function{.instructions = bytes({0x04, 0, 0, 1, 0, 0x0e, 16})};
    const auto row = function.at(0x10ff);
    REQUIRE(row);
    CHECK(row->end == 0x1100);
    CHECK(row->cfa_offset == 8);
}

TEST_CASE("registers that the unwinder does not track are skipped") {
    Function function{.instructions = bytes({0x05, 64, 2, 0x05, 0x88, 0x02, 3, 0x07, 0xff, 0xff, 0x03, 0x0e, 32})};
    const auto row = function.at(0x1000);
    REQUIRE(row);
    CHECK(row->cfa_offset == 32);
    for (std::size_t number = 0; number < max_registers; ++number)
        CHECK(row->registers[number] == (number == 16 ? at_cfa(-8) : RegisterRule{}));
}

TEST_CASE("signal frames are marked") {
    Function function{.common = {.data_alignment = -8, .return_column = 16, .signal_frame = true}};
    CHECK(function.at(0x1000)->signal_frame);
}

TEST_CASE("instructions are run until the work limit") {
    Function function;
    for (int i = 0; i < 2000; ++i) function.instructions += bytes({0x0a, 0x0b});  // remember_state, restore_state
    CHECK(function.at(0x1000));
    for (int i = 0; i < 500'000; ++i) function.instructions += bytes({0x0a, 0x0b});
    function.work.begin_stack();
    CHECK_FALSE(function.at(0x1000));
    CHECK(function.work.spent());
}

TEST_CASE("unreadable instructions are refused") {
    const auto refused = [](std::initializer_list<int> instructions) {
        Function function{.instructions = bytes(instructions)};
        return !function.at(0x1000);
    };
    CHECK(refused({0x17}));  // no such instruction
    CHECK(refused({0x3f}));
    CHECK(refused({0x2d}));                 // only on aarch64
    CHECK(refused({0x0c, 7}));              // the operand is missing
    CHECK(refused({0x0c, 0xff, 0x03, 8}));  // CFA in register 511
    CHECK(refused({0x0f, 200, 0x30}));      // an expression longer than the bytes
    CHECK(refused({0x04, 1, 2}));
    CHECK(refused({0x80, 0x80, 0x80}));                    // an LEB128 that does not end
    CHECK(refused({0x01, 0xff, 0x0f, 0, 0, 0, 0, 0, 0}));  // set_loc backwards
    Function no_cfa{.initial = bytes({0x90, 1})};
    CHECK_FALSE(no_cfa.at(0x1000));
    Function no_return{.common = {.data_alignment = -8, .return_column = 33}};
    CHECK_FALSE(no_return.at(0x1000));
    Function moving{.initial = usual_initial + bytes({0x41})};
    CHECK_FALSE(moving.at(0x1000));
    Function wraps{.instructions = bytes({0x41, 0x04, 0xff, 0xff, 0xff, 0xff}),
                   .common = {.code_alignment = ~std::uint64_t{0}, .data_alignment = -8, .return_column = 16}};
    CHECK_FALSE(wraps.at(0x1050));
    wraps.common.code_alignment = std::uint64_t{1} << 63;
    wraps.instructions = bytes({0x42});
    CHECK_FALSE(wraps.at(0x1050));
}

}  // namespace
}  // namespace flamewire::unwind
