// Compressed sections that claim to expand far more than debug info does.
#include "symbol/files/section_growth.h"

#include <catch2/catch.hpp>
#include <elf.h>
#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <vector>

#include "../fixture.h"
#include "base/growth.h"
#include "base/hex.h"
#include "symbol/files/compressed_file.h"
#include "symbol/files/locate.h"
#include "symbol/files/object_file.h"

namespace flamewire::symbol {
namespace {

constexpr std::uint64_t mib = std::uint64_t{1} << 20, gib = std::uint64_t{1} << 30;

struct Part {
    std::string name, content;
    std::uint64_t flags = 0;
    bool shares = false;  // uses the bytes of the previous one
    std::uint32_t type = SHT_PROGBITS;
};

// The form in which ELF stores numbers.
struct Format {
    bool is_64 = true, big_endian = false;
    [[nodiscard]] std::string number(std::uint64_t value, std::size_t size) const {
        std::string bytes;
        for (std::size_t i = 0; i < size; ++i) bytes += static_cast<char>(value >> 8 * (big_endian ? size - 1 - i : i));
        return bytes;
    }
    [[nodiscard]] std::string word(std::uint64_t value) const { return number(value, is_64 ? 8 : 4); }
};

// A file without segments, with these sections and .shstrtab.
std::string elf_of(std::vector<Part> parts, Format format = {}) {
    std::string names(1, '\0');
    for (const Part& part : parts) names += part.name + '\0';
    names += std::string(".shstrtab") + '\0';
    parts.push_back({".shstrtab", names, 0, false, SHT_STRTAB});
    const std::size_t header_bytes = format.is_64 ? 64 : 52, section_bytes = format.is_64 ? 64 : 40;
    std::string contents, table(section_bytes, '\0');
    std::uint64_t offset = 0, name = 1;
    for (const Part& part : parts) {
        if (!part.shares) {
            offset = header_bytes + contents.size();
            contents += part.content;
        }
        table += format.number(name, 4) + format.number(part.type, 4) + format.word(part.flags) + format.word(0) +
                 format.word(offset) + format.word(part.content.size()) + format.number(0, 8) + format.word(1) +
                 format.word(0);
        name += part.name.size() + 1;
    }
    std::string file = std::string(
                           "\x7f"
                           "ELF") +
                       static_cast<char>(format.is_64 ? 2 : 1) + static_cast<char>(format.big_endian ? 2 : 1) + '\x01' +
                       std::string(9, '\0');
    file += format.number(ET_EXEC, 2) + format.number(format.is_64 ? EM_X86_64 : EM_MIPS, 2) + format.number(1, 4) +
            format.word(0) + format.word(0) + format.word(header_bytes + contents.size()) + format.number(0, 4) +
            format.number(header_bytes, 2) + format.number(0, 4) + format.number(section_bytes, 2) +
            format.number(parts.size() + 1, 2) + format.number(parts.size(), 2);
    return file + contents + table;
}

// The section has `packed_bytes` bytes, including its header.
Part compressed(std::uint64_t holds, std::size_t packed_bytes, std::uint32_t type = 1, Format format = {}) {
    std::string content =
        format.number(type, 4) + (format.is_64 ? std::string(4, '\0') : "") + format.word(holds) + format.word(1);
    content.resize(packed_bytes);
    return {".debug_info", std::move(content), SHF_COMPRESSED};
}

// The error of opening it; "" if there is none.
std::string refusal(const ScratchFolder& folder, const std::string& content, const std::string& name = "program") {
    const std::string path = folder.path() + "/" + name;
    std::ofstream(path, std::ios::binary | std::ios::trunc) << content;
    const auto file = ObjectFile::open(path);
    if (file) return {};
    CHECK(file.error().code == ErrorCode::too_large);
    return file.error().message;
}

TEST_CASE("growth: 64 MiB, then 64 times, then the cap") {
    CHECK(growth_limit(0, gib) == 64 * mib);
    CHECK(growth_limit(mib, gib) == 64 * mib);
    CHECK(growth_limit(mib + 1, gib) == 64 * mib + 64);
    CHECK(growth_limit(16 * mib, gib) == gib);
    CHECK(growth_limit(16 * mib + 1, gib) == gib);
    CHECK(growth_limit(~std::uint64_t{0}, gib) == gib);
    CHECK(growth_limit(100, mib) == mib);
}

TEST_CASE("compressed sections: 64 MiB are always permitted, more only up to 64 times the file size") {
    const ScratchFolder folder;
    CHECK(refusal(folder, elf_of({compressed(64 * mib, 100)})).empty());
    CHECK(refusal(folder, elf_of({compressed(64 * mib + 1, 100)})) ==
          folder.path() +
              "/program has compressed sections of 0 MiB that would unpack to 64 MiB; at most 64 MiB of such a "
              "file are unpacked");
    CHECK(refusal(folder, elf_of({compressed(128 * mib, 2 * mib)})).empty());
    CHECK(refusal(folder, elf_of({compressed(128 * mib + 1, 2 * mib)})).find("at most 128 MiB") != std::string::npos);
    // The limit applies to the sum of all sections.
    Part second = compressed(64 * mib, mib);
    second.name = ".debug_str";
    CHECK(refusal(folder, elf_of({compressed(64 * mib, mib), second})).empty());
    second = compressed(64 * mib + 1, mib);
    CHECK_FALSE(refusal(folder, elf_of({compressed(64 * mib, mib), second})).empty());
}

TEST_CASE("compressed sections of every kind count") {
    const ScratchFolder folder;
    constexpr std::uint32_t zstd = 2, unknown = 9;
    CHECK_FALSE(refusal(folder, elf_of({compressed(gib, 100, zstd)})).empty());
    CHECK(refusal(folder, elf_of({compressed(gib, 100, unknown)})).empty());  // nothing decompresses it
    for (const Format format : {Format{true, true}, Format{false, false}, Format{false, true}})
        CHECK_FALSE(refusal(folder, elf_of({compressed(gib, 100, 1, format)}, format)).empty());
    std::string older = "ZLIB" + Format{true, true}.number(gib, 8);
    older.resize(100);
    CHECK_FALSE(refusal(folder, elf_of({{".zdebug_info", older}})).empty());
    CHECK(refusal(folder, elf_of({{".debug_info", older}})).empty());
}

TEST_CASE("compressed sections that share their bytes count them once") {
    const ScratchFolder folder;
    std::vector<Part> parts;
    for (int i = 0; i < 40; ++i) {
        parts.push_back(compressed(64 * mib, mib));
        parts.back().shares = i > 0;
    }
    CHECK_FALSE(refusal(folder, elf_of(parts)).empty());
}

TEST_CASE("compressed sections have a cap, whatever their size") {
    // A sparse file with a section whose header claims 8 GiB, or one byte more.
    const ScratchFolder folder;
    const std::string path = folder.path() + "/large";
    for (const std::uint64_t more : {0, 1}) {
        std::string file = elf_of({compressed(8 * gib + more, 100)});
        // The section is made as long as the file will be. Its size is the sixth field of the header.
        const std::size_t section = file.size() - std::size_t{2} * 64;
        file.replace(section + 32, 8, Format().number(gib, 8));
        std::ofstream(path, std::ios::binary | std::ios::trunc) << file;
        std::filesystem::resize_file(path, 2 * gib);
        const auto opened = ObjectFile::open(path);
        CHECK(opened.has_value() == (more == 0));
    }
}

TEST_CASE("a compressed file grows to 64 MiB, or 64 times its size") {
    const ScratchFolder folder;
    const std::string path = folder.path() + "/zeros";
    for (const char* compress : {"gzip -nc", "xz -c -T1", "zstd -qc"}) {
        for (const unsigned extra : {0, 8}) {
            (void)output_of(
                fmt::format("head -c {} /dev/zero | {} > {}", (std::uint64_t{56} + extra * 2) << 20, compress, path));
            CHECK(open_uncompressed(path).has_value() == (extra == 0));
        }
    }
}

TEST_CASE("the common debug info that dwz split off is checked before libdw opens it") {
    const ScratchFolder folder;
    const Part link{".gnu_debugaltlink", std::string("common.debug\0\x01\x02", 15), 0};
    const std::string program = elf_of({link});
    std::ofstream(folder.path() + "/common.debug", std::ios::binary) << elf_of({compressed(64 * mib, 100)});
    CHECK(refusal(folder, program).empty());
    std::ofstream(folder.path() + "/common.debug", std::ios::binary) << elf_of({compressed(gib, 100)});
    CHECK(refusal(folder, program).starts_with(folder.path() + "/common.debug has compressed sections"));
    std::ofstream(folder.path() + "/common.debug", std::ios::binary) << program;
    CHECK_FALSE(ObjectFile::open(folder.path() + "/program").has_value());
}

TEST_CASE("a file whose sections expand too far is the reason for missing names") {
    const ScratchFolder folder;
    ModuleIdentity module;
    module.path = "/usr/bin/deployed";
    Config config;
    config.binaries = {folder.path() + "/deployed"};
    std::ofstream(config.binaries[0], std::ios::binary) << elf_of({compressed(gib, 100)});
    const ModuleReport report = locate(module, config).report;
    CHECK(report.quality == Quality::none);
    CHECK(report.problem.starts_with(config.binaries[0] + " has compressed sections"));
    CHECK(report.remedy.find("objcopy --decompress-debug-sections") != std::string::npos);
}

TEST_CASE("separate debug info that expands too far is the reason for missing lines") {
    const ScratchFolder folder;
    ModuleIdentity module;
    module.path = "/usr/bin/program";
    module.build_id = build_id_of(fixture("stripped"));
    Config config;
    config.binaries = {folder.copy(fixture("stripped"), "program")};
    config.debug_directories = {folder.path()};
    const std::string hex = to_hex(module.build_id);
    const std::string place = folder.path() + "/.build-id/" + hex.substr(0, 2);
    std::filesystem::create_directories(place);
    const std::string note = Format().number(4, 4) + Format().number(module.build_id.size(), 4) +
                             Format().number(NT_GNU_BUILD_ID, 4) + std::string("GNU\0", 4) + module.build_id;
    const std::string debug = place + "/" + hex.substr(2) + ".debug";
    std::ofstream(debug, std::ios::binary)
        << elf_of({{".note.gnu.build-id", note, SHF_ALLOC, false, SHT_NOTE}, compressed(gib, 100)});
    const ModuleReport report = locate(module, config).report;
    CHECK(report.debug_file.empty());
    CHECK(report.problem.starts_with(debug + " has compressed sections"));
}

}  // namespace
}  // namespace flamewire::symbol
