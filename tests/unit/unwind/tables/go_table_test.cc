// Frames of Go code, from a program with a Go function table that the test writes. The expected rows follow from the
// code and the stack depths in the test. Oracle tests compare real programs with perf and gdb.
#include "unwind/tables/go_table.h"

#include <catch2/catch.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "../../elf/go_table.h"
#include "../elf_image.h"
#include "unwind/arch/arch.h"
#include "unwind/tables/module_tables.h"
#include "unwind/tables/rule.h"

namespace flamewire::unwind {
namespace {

using test::ElfImage;
using test::Writer;
using Kind = RegisterRule::Kind;

constexpr std::uint64_t text = 0x401000, table_at = 0x410000, notes_at = 0x420000;
constexpr std::uint32_t readable = 4, executable = 5, note_segment = 4;
constexpr std::uint8_t rbp = 6, rsp = 7, rip = 16;
constexpr unsigned outermost = 1, switches_stacks = 2;

// `depths`: the depth of the stack, and for how many bytes of code it holds.
struct Function {
    std::string name, code;
    elf::GoValues depths;
    unsigned flags = 0;
};

std::string table_of(const std::vector<Function>& functions) {
    elf::GoTable table{.text_start = text};
    table.end = text;
    for (const Function& function : functions) {
        table.functions.push_back(
            {.start = table.end, .name = function.name, .depth = function.depths, .flags = function.flags});
        table.end += function.code.size();
    }
    return table.bytes();
}

struct Program {
    std::string bytes;
    PageCache pages{std::size_t{1} << 20};
    TableWork work;
    std::unique_ptr<ModuleTables> tables;
    std::vector<std::uint64_t> starts;

    explicit Program(const std::vector<Function>& functions, bool with_note = true) {
        ElfImage image;
        std::string code;
        for (const Function& function : functions) {
            starts.push_back(text + code.size());
            code += function.code;
        }
        const std::string table = table_of(functions);
        image.load(executable, text, code);
        image.load(readable, table_at, table);
        Writer note;
        note.u32(4).u32(4).u32(4).raw(std::string_view("Go\0\0", 4)).raw("id..");
        image.load(readable, notes_at, note.out);
        if (with_note) image.segment(note_segment, notes_at, note.out.size());
        image.section(".gopclntab", 2, table_at, table.size());
        bytes = image.build();
        auto opened = ModuleTables::open(1, elf::source_of_bytes(as_bytes_view(bytes)), pages, work);
        REQUIRE(opened);
        tables = std::move(*opened);
    }
    Program(const Program&) = delete;
    Program& operator=(const Program&) = delete;
};

// sub $0x20, %rsp; mov %rbp, 0x18(%rsp); lea 0x18(%rsp), %rbp; call; mov 0x18(%rsp), %rbp; add $0x20, %rsp; ret
const std::string usual_code(
    "\x48\x83\xec\x20\x48\x89\x6c\x24\x18\x48\x8d\x6c\x24\x18\xe8\0\0\0\0\x48\x8b\x6c\x24\x18\x48\x83\xc4"
    "\x20\xc3",
    29);
Function usual(std::string name) { return {std::move(name), usual_code, {{0, 4}, {0x20, 24}, {0, 1}}}; }

bool keeps_frame_pointer(const FrameRow& row) { return arch_info(Arch::x86_64).frame_pointer_row(row); }

}  // namespace

TEST_CASE("A frame of Go code is left by its stack depth, and its frame pointer rule comes from its code") {
    const Program program({usual("main.work")});
    const auto row_at = [&](std::uint64_t offset) { return program.tables->row_at(text + offset); };
    for (const std::uint64_t offset : {0, 3, 28}) {  // before the frame exists, and at the return
        const auto row = row_at(offset);
        REQUIRE(row);
        CHECK(row->cfa_register == rsp);
        CHECK(row->cfa_offset == 8);
        CHECK(row->registers[rip].offset == -8);
        CHECK(row->registers[rbp].kind == Kind::same);
        CHECK(row->skips_caller);
    }
    for (const std::uint64_t offset : {4, 9, 24}) {  // rbp is not set yet, or is restored already
        const auto row = row_at(offset);
        REQUIRE(row);
        CHECK(row->cfa_offset == 0x28);
        CHECK(row->registers[rbp].kind == Kind::same);
        CHECK_FALSE(keeps_frame_pointer(*row));
    }
    for (const std::uint64_t offset : {14, 18, 19}) {
        const auto row = row_at(offset);
        REQUIRE(row);
        CHECK(row->cfa_register == rsp);
        CHECK(row->cfa_offset == 0x28);
        CHECK(row->registers[rbp].kind == Kind::at_cfa);
        CHECK(row->registers[rbp].offset == -16);
        CHECK(keeps_frame_pointer(*row));
        CHECK_FALSE(row->skips_caller);
    }
    CHECK_FALSE(row_at(29));
    CHECK_FALSE(program.tables->row_at(text - 1));
}

TEST_CASE("Frames of newer Go versions, which push the frame pointer") {
    // push %rbp; mov %rsp, %rbp; sub $0x10, %rsp; call; add $0x10, %rsp; pop %rbp; ret
    const std::string code("\x55\x48\x89\xe5\x48\x83\xec\x10\xe8\0\0\0\0\x48\x83\xc4\x10\x5d\xc3", 19);
    const Program program({{"main.work", code, {{0, 1}, {8, 7}, {0x18, 9}, {8, 1}, {0, 1}}}});
    for (const std::uint64_t offset : {0, 1, 18})
        CHECK_FALSE(keeps_frame_pointer(*program.tables->row_at(text + offset)));
    for (const std::uint64_t offset : {4, 8, 13, 17}) {
        const auto row = program.tables->row_at(text + offset);
        REQUIRE(row);
        CHECK(keeps_frame_pointer(*row));
        CHECK(row->cfa_offset == (offset == 8 || offset == 13 ? 0x20 : 0x10));
    }
}

TEST_CASE("A function that nothing calls is the root, except the runtime's signal handler") {
    Function exit = usual("runtime.goexit.abi0"), handler = usual("runtime.sigtramp.abi0");
    exit.flags = handler.flags = outermost;
    const Program program({exit, handler});
    CHECK(program.tables->row_at(program.starts[0] + 1)->registers[rip].kind == Kind::undefined);
    CHECK(compile_rule(*program.tables->row_at(program.starts[0] + 1), arch_info(Arch::x86_64)).kind ==
          Rule::Kind::root);
    CHECK(program.tables->row_at(program.starts[1] + 18)->registers[rip].kind == Kind::at_cfa);
}

TEST_CASE("After a switch of stacks, the frame pointer leads back") {
    Function without{"runtime.systemstack.abi0", std::string(16, '\x90'), {{0, 16}}, switches_stacks};
    Function with = usual("runtime.nanotime1.abi0"), back = usual("runtime.cgocallback.abi0");
    with.flags = back.flags = switches_stacks;
    back.name = "runtime.cgocallback";
    const Program program({without, with, back});
    for (const std::size_t which : {0, 1}) {
        const auto row = program.tables->row_at(program.starts[which] + 15);
        REQUIRE(row);
        CHECK(row->cfa_register == rbp);
        CHECK(row->cfa_offset == 16);
        CHECK(row->other_stack);
        CHECK(keeps_frame_pointer(*row));
        // A function with a frame of its own is followed by its caller. One without is followed by its caller's caller.
        CHECK(row->skips_caller == (which == 0));
    }
    const auto row = program.tables->row_at(program.starts[2] + 18);
    REQUIRE(row);
    CHECK(row->cfa_register == rsp);
    CHECK(row->signal_frame);
    CHECK(row->registers[rbp].kind == Kind::undefined);
}

TEST_CASE("A function that does not save the frame pointer keeps its caller's") {
    // push %r12; call; pop %r12; ret, as in assembly code
    const Program program(
        {{"runtime.asm", std::string("\x41\x54\xe8\0\0\0\0\x41\x5c\xc3", 10), {{0, 2}, {8, 7}, {0, 1}}}});
    const auto row = program.tables->row_at(text + 6);
    REQUIRE(row);
    CHECK(row->cfa_offset == 16);
    CHECK(row->registers[rbp].kind == Kind::same);
    CHECK(row->skips_caller);
    CHECK_FALSE(keeps_frame_pointer(*row));
}

TEST_CASE("The caller of duffzero sets up its frame") {
    const Program program({{"runtime.duffzero", std::string(16, '\x90'), {{0, 16}}}});
    const auto row = program.tables->row_at(text + 3);
    REQUIRE(row);
    CHECK(row->cfa_offset == 8);
    CHECK(row->registers[rbp].offset == -16);
    CHECK(keeps_frame_pointer(*row));
}

TEST_CASE("Functions of a Go program come from Go's table, and a file without Go's note has none") {
    const Program program({usual("main.a"), usual("main.b"), usual("main.c")});
    const auto functions = program.tables->some_functions(2);
    REQUIRE(functions.size() == 2);
    CHECK(functions[0].start == text);
    CHECK(functions[0].size == usual_code.size());
    const Program other({usual("main.a")}, false);
    CHECK_FALSE(other.tables->row_at(text + 18));
}

}  // namespace flamewire::unwind
