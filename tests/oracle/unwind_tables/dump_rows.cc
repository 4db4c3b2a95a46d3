// dump_rows FILE: reads hexadecimal ELF virtual addresses, one per line, and prints the row of the file's tables for
// each: ADDRESS START END CFA [signal] [signed] rN=RULE…, or ADDRESS none. Rules: c-16 stored at CFA - 16, v+8 is CFA + 8,
// u undefined, r7 in register 7, at:HEX stored at the expression's value, is:HEX the expression's value. Registers
// without a rule are omitted. Instead of addresses, `functions COUNT` prints the result of some_functions.
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "base/file.h"
#include "unwind/tables/module_tables.h"

namespace {

using namespace flamewire;
using Kind = unwind::RegisterRule::Kind;

std::string hex_of(const unwind::FrameRow& row, const unwind::ExpressionRange& range) {
    std::string out;
    for (const char byte : row.expressions.substr(range.begin, range.size)) {
        char digits[3];
        std::snprintf(digits, sizeof digits, "%02x", static_cast<unsigned char>(byte));
        out += digits;
    }
    return out;
}

void print_rule(const unwind::FrameRow& row, unsigned number) {
    const unwind::RegisterRule& rule = row.registers[number];
    switch (rule.kind) {
        case Kind::same: return;
        case Kind::undefined: std::printf(" r%u=u", number); return;
        case Kind::at_cfa: std::printf(" r%u=c%+" PRId64, number, rule.offset); return;
        case Kind::cfa_plus: std::printf(" r%u=v%+" PRId64, number, rule.offset); return;
        case Kind::in_register: std::printf(" r%u=r%u", number, unsigned{rule.reg}); return;
        case Kind::at_expression: std::printf(" r%u=at:%s", number, hex_of(row, rule.expression).c_str()); return;
        case Kind::is_expression: std::printf(" r%u=is:%s", number, hex_of(row, rule.expression).c_str()); return;
    }
}

void print_row(const unwind::FrameRow& row) {
    std::printf("%" PRIx64 " %" PRIx64 " ", row.start, row.end);
    if (row.cfa_is_expression)
        std::printf("is:%s", hex_of(row, row.cfa_expression).c_str());
    else
        std::printf("r%u%+" PRId64, unsigned{row.cfa_register}, row.cfa_offset);
    if (row.signal_frame) std::printf(" signal");
    if (row.return_signed) std::printf(" signed");
    for (unsigned number = 0; number < unwind::max_registers; ++number) print_rule(row, number);
    std::printf("\n");
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 2) {
        std::fprintf(stderr, "usage: dump_rows FILE < ADDRESSES\n");
        return 2;
    }
    const auto fd = open_read(argv[1]);
    if (!fd) {
        std::fprintf(stderr, "dump_rows: %s\n", fd.error().message.c_str());
        return 1;
    }
    unwind::PageCache pages(std::size_t{8} << 20);
    unwind::TableWork work;
    const auto tables = unwind::ModuleTables::open(1, elf::source_of_fd(fd->get()), pages, work);
    if (!tables) {
        std::fprintf(stderr, "dump_rows: %s: %s\n", argv[1], tables.error().message.c_str());
        return 1;
    }
    char line[64];
    while (std::fgets(line, sizeof line, stdin) != nullptr) {
        work.begin_stack();
        if (std::strncmp(line, "functions ", 10) == 0) {
            for (const unwind::CodeRange& function : (*tables)->some_functions(std::strtoul(line + 10, nullptr, 10)))
                std::printf("%" PRIx64 " %" PRIx64 "\n", function.start, function.size);
            continue;
        }
        const std::uint64_t address = std::strtoull(line, nullptr, 16);
        std::printf("%" PRIx64 " ", address);
        if (const auto row = (*tables)->row_at(address))
            print_row(*row);
        else
            std::printf("none\n");
    }
    return 0;
}
