// The function to which a signal handler returns. The kernel reports its address, because libc registers it.
#include <catch2/catch.hpp>
#include <dlfcn.h>
#include <fmt/format.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "fixture.h"
#include "symbol/symbolizer.h"

#ifdef __x86_64__

namespace flamewire::symbol {
namespace {

void ignore(int) {}

// The layout that rt_sigaction(2) uses.
struct KernelAction {
    void (*handler)(int) = nullptr;
    unsigned long flags = 0;
    void* restorer = nullptr;
    unsigned long mask = 0;
};

// The library, and the function's address in it.
std::pair<std::string, std::uint64_t> signal_return() {
    struct sigaction before{}, action{};
    action.sa_handler = ignore;
    REQUIRE(::sigaction(SIGWINCH, &action, &before) == 0);
    KernelAction known;
    REQUIRE(::syscall(SYS_rt_sigaction, SIGWINCH, nullptr, &known, sizeof known.mask) == 0);
    REQUIRE(::sigaction(SIGWINCH, &before, nullptr) == 0);
    Dl_info info{};
    REQUIRE(::dladdr(known.restorer, &info) != 0);
    return {info.dli_fname,
            reinterpret_cast<std::uint64_t>(known.restorer) - reinterpret_cast<std::uint64_t>(info.dli_fbase)};
}

std::vector<std::string> names_at(const std::string& path, CodeAddress address) {
    Config config;
    config.debug_directories.clear();
    Symbolizer symbolizer(config);
    ModuleIdentity module;
    module.path = path;
    const Resolved resolved = symbolizer.resolve(module, std::array{address});
    std::vector<std::string> names;
    for (const SourceFrame& frame : resolved.frames) names.push_back(resolved.strings.at(frame.function));
    return names;
}

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("the function that returns from a signal has a name, with and without a symbol") {
    const auto [library, address] = signal_return();
    const ScratchFolder folder;
    const std::string stripped = folder.copy(std::filesystem::canonical(library), "stripped.so");
    const std::string with_symbols = folder.copy(stripped, "symbols.so");
    const std::uint64_t text = std::stoull(
        output_of("readelf -SW " + stripped + " | awk '/ \\.text /{printf \"0x%s\", $(NF-7)}'"), nullptr, 16);
    const auto symbol = [text](const std::string& name, std::uint64_t at) {
        return fmt::format(" --add-symbol {}=.text:{:#x},function,local", name, at - text);
    };
    REQUIRE(std::system(("strip --strip-all " + stripped).c_str()) == 0);
    REQUIRE(std::system(("objcopy --strip-all" + symbol("before", address - 64) + symbol("ends_signal", address) + " " +
                         with_symbols)
                            .c_str()) == 0);
    CHECK(names_at(stripped, {address, true}) == Names{"__restore_rt"});
    CHECK(names_at(with_symbols, {address, true}) == Names{"ends_signal"});
    // A return address is after a call, so this address is inside of the function.
    CHECK(names_at(with_symbols, {address + 1, true}) == Names{"ends_signal"});
    CHECK(names_at(with_symbols, {address, false}) == Names{"ends_signal"});
    CHECK(names_at(stripped, {address + 1, true}).empty());
    // No call returns to the first byte of another function.
    CHECK(names_at(with_symbols, {address - 64, true}).empty());
    CHECK(names_at(with_symbols, {address - 63, true}) == Names{"before"});
}

}  // namespace flamewire::symbol

#endif
