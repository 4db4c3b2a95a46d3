#include "symbol/kernel/kernel.h"

#include <catch2/catch.hpp>

#include "base/file.h"
#include "symbol/symbolizer.h"

namespace flamewire::symbol {
namespace {

std::string name_at(const SymbolTable& table, std::uint64_t address) {
    const std::uint32_t symbol = table.find(address);
    return symbol == SymbolTable::none ? "-" : std::string(table.name(symbol));
}

TEST_CASE("kallsyms: functions relative to _text, modules above, data left out") {
    const auto table = parse_kallsyms(
        "0000000000000000 A fixed_percpu_data\n"
        "ffffffff81000000 T _text\n"
        "ffffffff81000010 t helper\n"
        "ffffffff81000080 D jiffies\n"
        "ffffffff81000100 W weak_function\n"
        "garbage\n"
        "ffffffffc0001000 t ext4_find\t[ext4]\n"
        "ffffffffc0002000 t last_line_without_newline");
    REQUIRE(table);
    CHECK(name_at(*table, 0) == "_text");
    CHECK(name_at(*table, 0xf) == "_text");
    CHECK(name_at(*table, 0x10) == "helper");
    CHECK(name_at(*table, 0x80) == "helper");
    CHECK(name_at(*table, 0x1000) == "weak_function");
    CHECK(name_at(*table, 0x3f001010) == "ext4_find [ext4]");
    // Code without an entry does not belong to the function before it, beyond a maximum length.
    CHECK(name_at(*table, 0x3f001fff) == "ext4_find [ext4]");
    CHECK(name_at(*table, 0x100 + (1 << 20) - 1) == "weak_function");
    CHECK(name_at(*table, 0x100 + (1 << 20)) == "-");
    CHECK(name_at(*table, 0x3f003000 + (1 << 20)) == "-");
    CHECK(name_at(*table, 0x3f002000) == "last_line_without_newline");
}

TEST_CASE("kallsyms with hidden addresses, and an empty one") {
    const auto hidden = parse_kallsyms("0000000000000000 T _text\n0000000000000000 t helper\n");
    REQUIRE_FALSE(hidden);
    CHECK(hidden.error().code == ErrorCode::permission);
    CHECK_FALSE(parse_kallsyms(""));
    CHECK_FALSE(parse_kallsyms(std::string_view("\0\n\n  \n", 6)));
}

TEST_CASE("the running kernel's symbols are used only for recordings of this boot") {
    CHECK_FALSE(running_kernel_symbols("00000000-0000-0000-0000-000000000000"));
    CHECK_FALSE(running_kernel_symbols(""));
    Symbolizer symbolizer(Config{});
    const ModuleIdentity other{ModuleKind::kernel, "[kernel]", {}, "00000000-0000-0000-0000-000000000000", 0};
    CHECK(symbolizer.report(other).problem ==
          "no kernel symbols: the recording is of another boot or machine than this one");

    const std::string boot = read_file("/proc/sys/kernel/random/boot_id").value().substr(0, 36);
    const ModuleIdentity own{ModuleKind::kernel, "[kernel]", {}, boot, 0};
    const ModuleReport report = symbolizer.report(own);
    if (report.quality == Quality::none) {
        WARN("kernel addresses are hidden from this user: " << report.problem);
        CHECK_FALSE(report.remedy.empty());
        return;
    }
    CHECK(report.file == "/proc/kallsyms");
    const CodeAddress start[] = {{0, false}};
    CHECK(symbolizer.resolve(own, start).frames.size() == 1);
}

}  // namespace
}  // namespace flamewire::symbol
