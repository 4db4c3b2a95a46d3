// Damaged files: whatever the debug sections contain, a lookup ends and stays within bounds (the sanitizer builds check
// this).
#include <catch2/catch.hpp>

#include <fstream>
#include <iterator>
#include <random>

#include "base/file.h"
#include "elf/elf_file.h"
#include "fixture.h"
#include "symbol/symbolizer.h"

namespace flamewire::symbol {
namespace {

void resolve_around(const std::string& path, std::uint64_t around, std::vector<std::string> binaries = {}) {
    ModuleIdentity module;
    module.path = path;
    std::vector<CodeAddress> addresses;
    for (std::uint64_t offset = 0; offset < 2048; offset += 16)
        addresses.push_back({around - 1024 + offset, offset % 32 == 0});
    Config config;
    config.binaries = std::move(binaries);
    Symbolizer symbolizer(std::move(config));
    const Resolved resolved = symbolizer.resolve(module, addresses);
    REQUIRE(resolved.first.size() == addresses.size() + 1);
    for (const SourceFrame& frame : resolved.frames) {
        REQUIRE(frame.function < resolved.strings.size());
        REQUIRE(frame.file < resolved.strings.size());
    }
}

void write(const std::string& path, const std::string& content) {
    std::ofstream(path, std::ios::binary | std::ios::trunc) << content;
}

TEST_CASE("bytes of a split-off unit replaced at random") {
    const ScratchFolder folder;
    for (const std::string build : {"split4", "split5"}) {
        std::string split =
            output_of("find " FIXTURE_DIR "/.. -name program.cc.dwo -path '*fixture_" + build + ".dir*'");
        split.pop_back();
        const std::string good = read_file(split).value();
        const std::uint64_t around = addresses_of(fixture(build)).at("plain");
        const auto file = elf::read_header(elf::source_of_bytes(as_bytes_view(good)));
        std::mt19937 random(11);
        const auto sections = elf::read_sections(elf::source_of_bytes(as_bytes_view(good)), file.value()).value();
        for (const elf::Section& section : sections) {
            if (!section.name.starts_with(".debug_")) continue;
            for (int round = 0; round < 40; ++round) {
                std::string bad = good;
                for (int i = 0; i < (round < 20 ? 1 : 40); ++i) {
                    // The unit's header with its id must stay intact, because otherwise nothing would be read.
                    const std::uint64_t first = section.name == ".debug_info.dwo" ? 20 : 0;
                    const std::uint64_t size = section.size - first;
                    const std::uint64_t reach = i % 2 == 0 ? std::min<std::uint64_t>(size, 64) : size;
                    bad[static_cast<std::size_t>(section.offset + first + random() % reach)] =
                        static_cast<char>(random());
                }
                write(folder.path() + "/program.cc.dwo", bad);
                resolve_around(fixture(build), around, {folder.path() + "/program.cc.dwo"});
            }
        }
    }
}

TEST_CASE("bytes of the debug sections replaced at random") {
    const ScratchFolder folder;
    for (const std::string build : {"full", "dwarf4", "zstd"}) {
        const std::string good = read_file(fixture(build)).value();
        const std::uint64_t around = addresses_of(fixture(build)).at("plain");
        auto file = elf::read_header(elf::source_of_bytes(as_bytes_view(good)));
        const auto sections = elf::read_sections(elf::source_of_bytes(as_bytes_view(good)), file.value()).value();
        std::mt19937 random(7);
        for (const elf::Section& section : sections) {
            if (!section.name.starts_with(".debug_") && section.name != ".symtab" && section.name != ".strtab")
                continue;
            REQUIRE(section.offset + section.size <= good.size());
            for (int round = 0; round < 12; ++round) {
                std::string bad = good;
                const std::size_t hits = round < 6 ? 1 : 40;
                for (std::size_t i = 0; i < hits; ++i) {
                    // The first bytes are headers, so hit them more often.
                    const std::uint64_t reach = i % 2 == 0 ? std::min<std::uint64_t>(section.size, 64) : section.size;
                    bad[static_cast<std::size_t>(section.offset + random() % reach)] = static_cast<char>(random());
                }
                write(folder.path() + "/program", bad);
                resolve_around(folder.path() + "/program", around);
            }
        }
    }
}

TEST_CASE("a truncated file") {
    const ScratchFolder folder;
    const std::string good = read_file(fixture("full")).value();
    const std::uint64_t around = addresses_of(fixture("full")).at("plain");
    for (std::size_t size = 0; size < good.size(); size += good.size() / 40) {
        write(folder.path() + "/program", good.substr(0, size));
        resolve_around(folder.path() + "/program", around);
    }
}

}  // namespace
}  // namespace flamewire::symbol
