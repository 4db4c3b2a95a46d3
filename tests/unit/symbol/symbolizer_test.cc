// The whole way from addresses to frames. The program prints its own return addresses and its source has marks, so
// addresses and lines are known without a symbolizer.
#include "symbol/symbolizer.h"

#include <catch2/catch.hpp>
#include <sys/auxv.h>

#include <array>
#include <cstdio>
#include <fstream>
#include <memory>
#include <thread>

#include "base/hex.h"
#include "elf/elf_file.h"
#include "fixture.h"

namespace flamewire::symbol {

std::string output_of(const std::string& command) {
    const std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(command.c_str(), "r"), &pclose);
    std::string text;
    std::array<char, 4096> part;
    while (pipe && std::fgets(part.data(), part.size(), pipe.get()) != nullptr) text += part.data();
    return text;
}

std::map<std::string, std::uint64_t> addresses_of(const std::string& program) {
    std::map<std::string, std::uint64_t> addresses;
    std::istringstream lines(output_of(program));
    std::string mark, address;
    while (lines >> mark >> address) addresses[mark] = std::stoull(address, nullptr, 16);
    return addresses;
}

std::uint32_t line_of(const std::string& mark) {
    std::ifstream source(FIXTURE_SOURCE);
    std::string line;
    for (std::uint32_t number = 1; std::getline(source, line); ++number)
        if (line.ends_with("// MARK " + mark)) return number;
    FAIL("no mark " << mark);
    return 0;
}

std::string build_id_of(const std::string& program) {
    const std::string notes = output_of("readelf -n " + program);
    const std::size_t start = notes.find("Build ID: ");
    if (start == std::string::npos) return {};
    return from_hex(notes.substr(start + 10, 40)).value();
}

ScratchFolder::ScratchFolder() {
    std::string name = std::filesystem::temp_directory_path() / "flamewire-symbol-XXXXXX";
    path_ = mkdtemp(name.data());
}
ScratchFolder::~ScratchFolder() { std::filesystem::remove_all(path_); }

std::string ScratchFolder::copy(const std::string& from, const std::string& to) const {
    const std::filesystem::path target = path_ / to;
    std::filesystem::create_directories(target.parent_path());
    std::filesystem::copy_file(from, target);
    return target.string();
}

namespace {

// "function@line" of each frame, innermost first. Inlined ones end with "<". The file is checked separately.
std::vector<std::string> frames_at(Symbolizer& symbolizer, const ModuleIdentity& module, CodeAddress address,
                                   const std::string& file = FIXTURE_SOURCE) {
    const Resolved resolved = symbolizer.resolve(module, std::array{address});
    REQUIRE(resolved.first.size() == 2);
    CHECK(resolved.strings.at(0).empty());
    std::vector<std::string> frames;
    for (const SourceFrame& frame : resolved.frames) {
        CHECK(resolved.strings.at(frame.file) == file);
        frames.push_back(resolved.strings.at(frame.function) + "@" + std::to_string(frame.line) +
                         (frame.inlined ? "<" : ""));
    }
    return frames;
}

std::string at(const std::string& function, const std::string& mark, bool inlined = false) {
    return function + "@" + std::to_string(line_of(mark)) + (inlined ? "<" : "");
}

using Strings = std::vector<std::string>;

// The names that the compiler of the fixture generates, which also compiles this test. GCC gives a static function no
// linkage name, so DWARF has only the bare one.
#ifdef __clang__
constexpr const char* static_function = "shop::innermost()";
constexpr const char* lambda = "main::$_0::operator()(int) const";
#else
constexpr const char* static_function = "innermost";
constexpr const char* lambda = "main::{lambda(int)#1}::operator()(int) const";
#endif

TEST_CASE("functions, inlined functions and lines of a known program, in each kind of DWARF") {
    for (const std::string build :
         {"full", "dwarf4", "compressed", "zstd", "anonymous", "another", "split4", "split5"}) {
        CAPTURE(build);
        ModuleIdentity module;
        module.path = fixture(build);
        auto addresses = addresses_of(module.path);
        REQUIRE(addresses.size() == 5);
        Symbolizer symbolizer(Config{});
        const auto frames = [&](const std::string& mark) {
            return frames_at(symbolizer, module, {addresses.at(mark), true});
        };
        CHECK(frames("plain") == Strings{at("shop::pay(int)", "plain")});
        CHECK(frames("inlined-twice") == Strings{at(static_function, "inlined-twice", true),
                                                 at("shop::middle()", "calls-innermost", true),
                                                 at("shop::pay(int)", "calls-middle")});
        CHECK(frames("in-template") ==
              Strings{at("shop::Basket<int>::add(int)", "in-template", true), at("shop::pay(int)", "calls-add")});
        CHECK(frames("c-function") == Strings{at("c_function", "c-function")});
        CHECK(frames("lambda").size() == 1);
        // The compiler may add the suffix of a clone.
        CHECK(frames("lambda").at(0).starts_with(lambda));
        CHECK(frames("lambda").at(0).ends_with("@" + std::to_string(line_of("lambda"))));
        const ModuleReport report = symbolizer.report(module);
        CHECK(report.quality == Quality::debug_info);
        CHECK(report.file == module.path);
        CHECK(report.problem.empty());
    }
}

TEST_CASE("without inlining: the linker's function, at the line of its outermost call") {
    ModuleIdentity module;
    module.path = fixture("full");
    auto addresses = addresses_of(module.path);
    Config config;
    config.inlines = false;
    Symbolizer symbolizer(config);
    CHECK(frames_at(symbolizer, module, {addresses.at("inlined-twice"), true}) ==
          Strings{at("shop::pay(int)", "calls-middle")});
}

TEST_CASE("a stripped file gives no names, and with its debug file it gives all") {
    const ScratchFolder folder;
    ModuleIdentity module;
    module.path = folder.copy(fixture("stripped"), "bin/program");
    module.build_id = build_id_of(fixture("full"));
    auto addresses = addresses_of(fixture("full"));
    Symbolizer symbolizer(Config{});
    CHECK(frames_at(symbolizer, module, {addresses.at("plain"), true}).empty());
    const ModuleReport poor = symbolizer.report(module);
    CHECK(poor.quality == Quality::dynamic_symbols);
    CHECK(poor.problem.find("has no debug info") != std::string::npos);
    CHECK_FALSE(poor.remedy.empty());

    folder.copy(fixture("stripped") + ".debug", "bin/.debug/program.debug");
    const std::uint64_t before = symbolizer.generation();
    symbolizer.set_config(Config{});
    CHECK(symbolizer.generation() > before);
    CHECK(frames_at(symbolizer, module, {addresses.at("plain"), true}) == Strings{at("shop::pay(int)", "plain")});
    CHECK(symbolizer.report(module).debug_file == folder.path() + "/bin/.debug/program.debug");
    CHECK(symbolizer.report(module).quality == Quality::debug_info);
}

TEST_CASE("unreadable debug info leaves the names, with a message") {
    ModuleIdentity module;
    module.path = fixture("broken");
    Symbolizer symbolizer(Config{});
    // For a global function, the symbol table does not contain the file.
    CHECK(frames_at(symbolizer, module, {addresses_of(fixture("full")).at("plain"), true}, "") ==
          Strings{"shop::pay(int)@0"});
    const ModuleReport report = symbolizer.report(module);
    CHECK(report.quality == Quality::symbols);
    CHECK(report.problem == "the debug info of " + module.path + " is damaged or of an unknown kind");
    CHECK_FALSE(report.remedy.empty());
}

TEST_CASE("many addresses share their strings, and unknown ones have no frames") {
    ModuleIdentity module;
    module.path = fixture("full");
    auto addresses = addresses_of(module.path);
    Symbolizer symbolizer(Config{});
    const std::array requested = {CodeAddress{addresses.at("plain"), true}, CodeAddress{1, false}, CodeAddress{0, true},
                                  CodeAddress{~std::uint64_t{0}, false}, CodeAddress{addresses.at("plain"), true}};
    const Resolved resolved = symbolizer.resolve(module, requested);
    REQUIRE(resolved.first == std::vector<std::uint32_t>{0, 1, 1, 1, 1, 2});
    CHECK(resolved.frames[0].function == resolved.frames[1].function);
    CHECK(resolved.strings.size() == 3);  // "", the function, the file
    CHECK(symbolizer.resolve(module, {}).first == std::vector<std::uint32_t>{0});
}

TEST_CASE("modules without a file") {
    Symbolizer symbolizer(Config{});
    ModuleIdentity jit{ModuleKind::jit, "[jit]", {}, {}, 0};
    CHECK(frames_at(symbolizer, jit, {0x1000, false}).empty());
    ModuleIdentity gone{ModuleKind::file, "/no/such/file", "\x01\x02\x03", {}, 0};
    CHECK(frames_at(symbolizer, gone, {0x1000, false}).empty());
    const ModuleReport report = symbolizer.report(gone);
    CHECK(report.quality == Quality::none);
    CHECK(report.problem == "no file for /no/such/file was found");
    CHECK(report.tried == Strings{"/no/such/file", "/usr/lib/debug/.build-id/01/0203.debug",
                                  "/usr/lib/debug/.build-id/01/0203", "/no/such/.debug/file",
                                  "/usr/lib/debug/no/such/file.debug", "/usr/lib/debug/no/such/file"});
}

TEST_CASE("this kernel's vDSO has symbols, another kernel's does not") {
    const auto start = getauxval(AT_SYSINFO_EHDR);
    REQUIRE(start != 0);
    const Bytes page(reinterpret_cast<const std::byte*>(start), 4096);
    const elf::ByteSource source = elf::source_of_bytes(page);
    const auto header = elf::read_header(source);
    REQUIRE(header);
    const std::string id = elf::read_build_id(source, *header).value();
    REQUIRE_FALSE(id.empty());
    Symbolizer symbolizer(Config{});
    // Every function of a vDSO is exported. One of them is at the address that the C library found.
    Resolved resolved;
    std::vector<CodeAddress> all;
    for (std::uint64_t address = 0; address < 8192; address += 16) all.push_back({address, false});
    resolved = symbolizer.resolve({ModuleKind::vdso, "[vdso]", id, {}, 0}, all);
    const auto& names = resolved.strings;
    CHECK(std::any_of(names.begin(), names.end(),
                      [](const std::string& name) { return name.ends_with("clock_gettime"); }));
    CHECK(symbolizer.resolve({ModuleKind::vdso, "[vdso]", "other", {}, 0}, all).frames.empty());
    CHECK_FALSE(symbolizer.report({ModuleKind::vdso, "[vdso]", "other", {}, 0}).problem.empty());
}

TEST_CASE("threads look up the same and different modules") {
    const std::array<std::string, 3> builds = {"full", "dwarf4", "compressed"};
    Symbolizer symbolizer(Config{});
    std::array<std::size_t, 6> depths{};
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < depths.size(); ++i)
        threads.emplace_back([&, i] {
            const std::string program = fixture(builds[i % builds.size()]);
            const std::uint64_t address = addresses_of(program).at("inlined-twice");
            ModuleIdentity module;
            module.path = program;
            for (int round = 0; round < 20; ++round) {
                if (i == 0 && round % 5 == 0) symbolizer.set_config(Config{});
                depths[i] = symbolizer.resolve(module, std::array{CodeAddress{address, true}}).frames.size();
            }
        });
    for (std::thread& thread : threads) thread.join();
    for (const std::size_t depth : depths) CHECK(depth == 3);
}

}  // namespace
}  // namespace flamewire::symbol
