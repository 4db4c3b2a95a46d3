// Where the bytes of a module come from, and the message if they are missing.
#include <catch2/catch.hpp>
#include <elf.h>

#include <sstream>

#include "fixture.h"
#include "symbol/files/fetched_file.h"
#include "symbol/symbolizer.h"

using namespace flamewire::symbol;

namespace {

struct Listed {
    std::uint64_t address = 0, size = 0;
};

// The entry of main in the output of nm, on any machine.
Listed main_of(const std::string& program) {
    std::istringstream line(output_of("nm -S " + program + " | grep ' T main$'"));
    Listed found;
    line >> std::hex >> found.address >> found.size;
    REQUIRE(found.size > 0);
    return found;
}

ModuleIdentity program_at(const std::string& path) {
    ModuleIdentity module;
    module.path = path;
    module.build_id = build_id_of(fixture("full"));
    return module;
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("a function is the range that its symbol covers") {
    const Listed expected = main_of(fixture("full"));
    Symbolizer symbolizer(Config{});
    const flamewire::CodeAddress addresses[] = {{expected.address, false},
                                                {expected.address + expected.size, true},  // its last call
                                                {1, false}};
    const auto functions = symbolizer.functions(program_at(fixture("full")), addresses);
    REQUIRE(functions.size() == 3);
    for (std::size_t i = 0; i < 2; ++i) {
        CHECK(functions[i].name == "main");
        CHECK(functions[i].start == expected.address);
        CHECK(functions[i].size == expected.size);
    }
    CHECK(functions[2].size == 0);
}

TEST_CASE("code comes from the file that has it, names from the file that has them") {
    const Listed expected = main_of(fixture("full"));
    Symbolizer whole(Config{});
    const ModuleCode code = whole.code(program_at(fixture("full")), expected.address, expected.size);
    CHECK(code.problem.empty());
    CHECK(code.file == fixture("full"));
    REQUIRE(code.bytes.size() == expected.size);

    // The debug file comes first; the code is in the stripped program.
    Config config;
    config.binaries = {fixture("stripped") + ".debug"};
    Symbolizer split(config);
    const ModuleCode same = split.code(program_at(fixture("stripped")), expected.address, expected.size);
    CHECK(same.file == fixture("stripped"));
    CHECK(same.bytes == code.bytes);

    // Without it, only debug info remains, which has no code.
    Symbolizer alone(config);
    const ModuleCode missing = alone.code(program_at("/nowhere/program"), expected.address, expected.size);
    CHECK(missing.bytes.empty());
    CHECK(contains(missing.problem, "only debug info"));
    CHECK(contains(missing.remedy, "--binary"));
    CHECK(contains(missing.remedy, "--sysroot"));
}

TEST_CASE("a file that an agent sent has holes in place of the code") {
    const ScratchFolder folder;
    const ModuleIdentity module = program_at("/nowhere/program");
    folder.copy(fixture("full"), fetched_name(module));
    Config config;
    config.module_directory = folder.path();
    Symbolizer symbolizer(config);
    const Listed listed = main_of(fixture("full"));
    const ModuleCode code = symbolizer.code(module, listed.address, listed.size);
    CHECK(code.bytes.empty());
    CHECK(contains(code.problem, "the agent sent the symbols of program, not its code"));
    // The names are present.
    CHECK(symbolizer.functions(module, std::vector<flamewire::CodeAddress>{{listed.address, false}})[0].name == "main");
}

TEST_CASE("code that is in no file causes a message") {
    Symbolizer symbolizer(Config{});
    ModuleIdentity module;
    module.kind = ModuleKind::jit;
    CHECK(contains(symbolizer.code(module, 0, 16).problem, "while the program ran"));
    module.kind = ModuleKind::kernel;
    module.build_id = "no kernel has it";
    CHECK(contains(symbolizer.code(module, 0, 16).remedy, "vmlinux"));
    CHECK(contains(symbolizer.code(program_at("/nowhere/program"), 0, 16).problem, "/nowhere/program"));
    // An address without code, and a size beyond any file.
    const Listed listed = main_of(fixture("full"));
    CHECK(contains(symbolizer.code(program_at(fixture("full")), 1, 16).problem, "no code at 0x1"));
    const ModuleCode rest = symbolizer.code(program_at(fixture("full")), listed.address, ~std::uint64_t{0});
    CHECK(rest.bytes.size() >= listed.size);
    CHECK(rest.bytes.size() < (std::size_t{1} << 20));
}
