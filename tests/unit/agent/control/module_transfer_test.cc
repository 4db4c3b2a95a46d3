// Which bytes of a module contain names for its code, and which requests get them.
#include "agent/control/module_transfer.h"

#include <catch2/catch.hpp>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "../../elf/go_program.h"
#include "base/file.h"

namespace flamewire::agent {
namespace {

// A copy of this test program, which is large and has symbols and debug info.
class Program {
public:
    Program() {
        REQUIRE(::mkdtemp(folder_.data()) != nullptr);
        std::ofstream(path(), std::ios::binary) << read_file("/proc/self/exe", std::size_t{1} << 30).value();
    }
    ~Program() {
        ::unlink(path().c_str());
        ::rmdir(folder_.c_str());
    }
    Program(const Program&) = delete;
    Program& operator=(const Program&) = delete;

    [[nodiscard]] std::string path() const { return folder_ + "/program"; }
    [[nodiscard]] std::uint64_t size() const {
        struct stat status{};
        ::stat(path().c_str(), &status);
        return static_cast<std::uint64_t>(status.st_size);
    }
    [[nodiscard]] ModuleTransfers transfers(std::uint64_t cap) {
        return {cap, [this](const FileIdentity& identity) -> Result<UniqueFd> {
                    ++opened;
                    if (identity.path != "known") return fail(ErrorCode::not_found, "not seen");
                    return open_read(path());
                }};
    }

    int opened = 0;

private:
    std::string folder_ = "/tmp/flamewire-transfer-test-XXXXXX";
};

FetchRequest at(std::uint64_t offset, std::string path = "known") {
    FetchRequest request;
    request.id = "1";
    request.identity.path = std::move(path);
    request.offset = offset;
    return request;
}

TEST_CASE("the ranges contain the sections with names, but not the code") {
    const Program program;
    const UniqueFd fd = open_read(program.path()).value();
    const elf::ByteSource source = elf::source_of_fd(fd.get());
    const auto ranges = symbol_ranges(source, program.size()).value();
    const auto covered = [&](std::uint64_t offset, std::uint64_t size) {
        return std::any_of(ranges.begin(), ranges.end(), [&](const wire::FileRange& range) {
            return offset >= range.offset && offset + size <= range.offset + range.size;
        });
    };
    const elf::Header header = elf::read_header(source).value();
    std::uint64_t text = 0;
    const std::vector<elf::Section> sections = elf::read_sections(source, header).value();
    for (const elf::Section& section : sections) {
        INFO(section.name);
        for (const char* name : {".symtab", ".strtab", ".dynsym", ".dynstr", ".shstrtab", ".debug_info", ".debug_line",
                                 ".debug_str", ".note.gnu.build-id", ".plt"})
            if (section.name == name) CHECK(covered(section.offset, section.size));
        if (section.name == ".text") {
            text = section.size;
            CHECK_FALSE(covered(section.offset, section.size));
        }
    }
    CHECK(covered(header.section_offset, std::uint64_t{header.section_entry_size} * header.section_count));
    std::uint64_t total = 0;
    for (const wire::FileRange& range : ranges) total += range.size;
    CHECK(total < program.size() - text / 2);
    const std::string plain(100, 'x');
    CHECK_FALSE(symbol_ranges(elf::source_of_bytes(as_bytes_view(plain)), plain.size()));
}

TEST_CASE("for a Go program without debug info, Go's function table is sent") {
    elf::GoTable table = elf::go_table_with_inlined_calls({});
    const std::string contents = table.bytes();
    std::vector<elf::GoTestSection> written = {{".text", 1, 6, 0x401000, std::string(100'000, '\x90')},
                                               {".gopclntab", 1, 2, 0x500020, contents},
                                               {".text.more", 1, 6, 0x441000, std::string(100'000, '\x90')},
                                               {".noptrdata", 1, 3, 0x600000, std::string(100, '\1')},
                                               {".text.last", 1, 6, 0x481000, std::string(100'000, '\x90')}};
    for (const bool has_debug_info : {false, true}) {
        if (has_debug_info) written.push_back({".debug_info", 1, 0, 0, "x"});
        const std::string file = elf::go_elf_file(table, written);
        const elf::ByteSource source = elf::source_of_bytes(as_bytes_view(file));
        const auto ranges = symbol_ranges(source, file.size()).value();
        const std::vector<elf::Section> sections = elf::read_sections(source, elf::read_header(source).value()).value();
        for (const elf::Section& section : sections) {
            CAPTURE(section.name, has_debug_info);
            if (section.name != ".gopclntab" && section.name != ".noptrdata") continue;
            const bool covered = std::ranges::any_of(ranges, [&](const wire::FileRange& range) {
                return section.offset >= range.offset && section.offset + section.size <= range.offset + range.size;
            });
            CHECK(covered == !has_debug_info);
        }
        std::uint64_t total = 0;
        for (const wire::FileRange& range : ranges) total += range.size;
        CHECK(total < 20'000);
    }
}

TEST_CASE("the parts of a stream are the ranges of the file, from any offset") {
    Program program;
    ModuleTransfers transfers = program.transfers(std::uint64_t{1} << 40);
    std::string stream;
    wire::ModuleChunk chunk;
    do {
        chunk = transfers.read(at(stream.size())).value();
        CHECK(chunk.offset == stream.size());
        CHECK(chunk.file_size == program.size());
        stream += chunk.bytes;
    } while (stream.size() < chunk.total && !chunk.bytes.empty());
    REQUIRE(stream.size() == chunk.total);
    const std::string file = read_file(program.path(), std::size_t{1} << 30).value();
    std::string expected;
    for (const wire::FileRange& range : chunk.ranges) expected += file.substr(range.offset, range.size);
    CHECK(stream == expected);
    CHECK(program.opened == 1);
    FetchRequest odd = at(12'345);
    odd.bytes = 777;
    CHECK(transfers.read(odd)->bytes == expected.substr(12'345, 777));
    const auto end = transfers.read(at(chunk.total)).value();
    CHECK(end.bytes.empty());
    char hash[17];
    std::snprintf(hash, sizeof hash, "%016llx",
                  static_cast<unsigned long long>(wire::content_hash(wire::content_hash_begin, expected)));
    CHECK(end.hash == hash);
}

TEST_CASE("files that an agent does not send, with the reason") {
    Program program;
    ModuleTransfers off = program.transfers(0);
    CHECK(off.read(at(0)).error().code == ErrorCode::unsupported);
    CHECK(program.opened == 0);
    ModuleTransfers small = program.transfers(1000);
    const Error too_large = small.read(at(0)).error();
    CHECK(too_large.code == ErrorCode::too_large);
    CHECK(too_large.message.find("--module-cap") != std::string::npos);
    ModuleTransfers transfers = program.transfers(std::uint64_t{1} << 40);
    CHECK(transfers.read(at(0, "/etc/shadow")).error().code == ErrorCode::not_found);
    const std::uint64_t total = transfers.read(at(0))->total;
    CHECK(transfers.read(at(total + 1)).error().code == ErrorCode::closed);
    CHECK(transfers.read(at(~std::uint64_t{0})).error().code == ErrorCode::closed);
    // After a change in place, no further byte is sent. The next transfer starts again.
    std::ofstream(program.path(), std::ios::app) << "more";
    CHECK(transfers.read(at(100)).error().code == ErrorCode::closed);
    CHECK(transfers.read(at(0)).has_value());
    CHECK(program.opened == 4);  // small, unknown, known, and known again
}

TEST_CASE("a request for a module is parsed strictly, and a refusal has its code") {
    const auto parse = [](const std::string& args) {
        return parse_fetch(wire::parse_command(R"({"id":"5","cmd":"fetch_module","args":)" + args + "}").value());
    };
    const FetchRequest request =
        parse(R"({"build_id":"00ff","path":"/p","size":7,"mtime_ns":-3,"offset":9,"bytes":10})").value();
    CHECK(request.id == "5");
    CHECK(request.identity == FileIdentity{std::string("\x00\xff", 2), "/p", 7, -3});
    CHECK(request.offset == 9);
    CHECK(request.bytes == 10);
    CHECK(parse(R"({"path":"/p"})")->bytes == wire::max_module_chunk);
    for (const char* args : {"{}", R"({"build_id":"0"})", R"({"build_id":"xx"})", R"({"path":"/p","bytes":0})",
                             R"({"path":"/p","bytes":262145})"})
        CHECK(parse(args).error().code == ErrorCode::invalid);
    CHECK(encode_fetch_refusal("5", {ErrorCode::too_large, 0, "no"}) ==
          R"({"id":"5","ok":false,"error":"no","code":"too_large"})");
}

}  // namespace
}  // namespace flamewire::agent
