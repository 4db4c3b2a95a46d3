#include "symbol/demangle.h"

#include <catch2/catch.hpp>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <vector>

namespace flamewire::symbol {
namespace {

TEST_CASE("C++, Rust and D names, and names of no language") {
    CHECK(demangle("_ZNSt6vectorIiSaIiEE9push_backEOi") == "std::vector<int, std::allocator<int> >::push_back(int&&)");
    CHECK(demangle("_ZN3foo3barEi.isra.0") == "foo::bar(int) [clone .isra.0]");
    CHECK(demangle("_ZN3foo3barEi.cold") == "foo::bar(int) [clone .cold]");
    CHECK(demangle("_ZN4core3ptr5write17h651fe53ec860e780E") == "core::ptr::write");
    CHECK(demangle("_RNvC6_123foo3bar") == "123foo::bar");
    CHECK(demangle("_D4test3fooFiZv") == "test.foo(int)");
    CHECK(demangle("_ZNSt6thread4joinEv@plt") == "std::thread::join()@plt");
    CHECK(demangle("@plt") == "@plt");
    CHECK(demangle("main") == "main");
    CHECK(demangle("_start") == "_start");
    CHECK(demangle("_Z") == "_Z");
    CHECK(demangle("_ZN") == "_ZN");
    CHECK(demangle("") == "");
}

TEST_CASE("malformed and endless names do not cause endless loops") {
    CHECK(demangle("_Z" + std::string(100000, 'P')).size() == 100002);
    CHECK_FALSE(demangle("_Z" + std::string(60000, 'P') + "i").empty());
    CHECK_FALSE(demangle("_ZN" + std::string(50000, '1')).empty());
    CHECK_FALSE(demangle("_RNv" + std::string(50000, 'N')).empty());
    std::string stubs = "_Z";
    for (int i = 0; i < 500'000; ++i) stubs += "@plt";
    CHECK(demangle(stubs) == stubs);
}

// Each part refers twice to the previous one.
TEST_CASE("names that expand to far longer ones stay unchanged") {
    std::string cpp = "_Z4work1AIiiES_IS0_S0_E", d = "_D4testFHiiHQeQgHQgQi", rust = "_RINvC1a1bTmmE";
    CHECK(demangle(cpp) == "work(A<int, int>, A<A<int, int>, A<int, int> >)");
    CHECK(demangle(d + "Zv") == "test(int[int], int[int][int[int]], int[int][int[int]][int[int][int[int]]])");
    for (const char digit : std::string("123456789ABCDEFGHIJKLMNOPQRS")) {
        const std::string part = std::string("S") + digit + "_";
        cpp += "S_I" + part + part + "E";
        d += "HQgQi";
    }
    CHECK(demangle(cpp) == cpp);
    CHECK(demangle(d + "Zv") == d + "Zv");
    CHECK(demangle(rust + "E") == "a::b::<(u32, u32)>");
    constexpr std::string_view digits = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    const auto reference = [&](std::size_t place) {
        std::string number;
        for (std::size_t left = place - 1; number.empty() || left > 0; left /= 62)
            number.insert(0, 1, digits[left % 62]);
        return "B" + number + "_";
    };
    std::size_t before = std::string_view("INvC1a1b").size();
    for (int i = 0; i < 40; ++i) {
        const std::string part = reference(before);
        before = rust.size() - 2;
        rust += "T" + part + part + "E";
        if (i == 0) CHECK(demangle(rust + "E") == "a::b::<(u32, u32), ((u32, u32), (u32, u32))>");
    }
    CHECK(demangle(rust + "E") == rust + "E");
}

// Columns: style, options, mangled, expected with parameters, expected without.
std::vector<std::vector<std::string>> rows_of(const std::string& path) {
    std::vector<std::vector<std::string>> rows;
    std::ifstream file(path);
    for (std::string line; std::getline(file, line);) {
        std::vector<std::string> columns(1);
        for (const char c : line)
            if (c == '\t')
                columns.emplace_back();
            else
                columns.back() += c;
        rows.push_back(columns);
    }
    return rows;
}

// Rows with the options of demangle(): automatic style, with parameters.
bool applies(const std::vector<std::string>& row) {
    if (row.size() < 4) return false;
    const bool plain =
        row[1].empty() || row[1] == "--format=" + row[0] || row[1] == "--format=" + row[0] + " --no-params";
    const bool style =
        row[0] == "auto" || row[0] == "rust" || (row[0] == "gnu-v3" && row[2].find("17h") == std::string::npos);
    return plain && style && (row[2].starts_with("_Z") || row[2].starts_with("_R"));
}

TEST_CASE("libiberty's own expected names") {
    const char* set = std::getenv("FLAMEWIRE_CORPUS");
    const std::string corpus = set != nullptr ? set : std::string(PROJECT_DIR) + "/../shared/corpus";
    const auto cpp = rows_of(corpus + "/demangle/libiberty-demangle-expected.tsv");
    const auto rust = rows_of(corpus + "/demangle/libiberty-rust-demangle-expected.tsv");
    if (cpp.empty() || rust.empty()) {
        WARN("NOT tested: no corpus at " << corpus << ", so libiberty's names are not compared (set FLAMEWIRE_CORPUS)");
        return;
    }
    std::size_t checked = 0;
    for (const auto* rows : {&cpp, &rust})
        for (const auto& row : *rows) {
            if (!applies(row)) continue;
            CHECK(demangle(row[2]) == row[3]);
            ++checked;
        }
    CHECK(checked > 200);
}

}  // namespace
}  // namespace flamewire::symbol
