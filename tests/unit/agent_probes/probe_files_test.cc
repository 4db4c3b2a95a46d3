// Files of probes, found for this process, whose mappings and files are known.
#include "agent/probes/probe_files.h"

#include <catch2/catch.hpp>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

using namespace flamewire;
using namespace flamewire::agent;

namespace {

ino_t inode_of(const std::string& path) {
    struct stat facts{};
    REQUIRE(::stat(path.c_str(), &facts) == 0);
    return facts.st_ino;
}

ino_t inode_of(const ProbeFile& file) {
    struct stat facts{};
    REQUIRE(::fstat(file.file.get(), &facts) == 0);
    return facts.st_ino;
}

}  // namespace

TEST_CASE("names of files") {
    CHECK(has_file_name("/usr/lib/libc.so.6", "libc.so.6"));
    CHECK(has_file_name("/usr/lib/libc.so.6", "libc"));
    CHECK_FALSE(has_file_name("/usr/lib/libcrypt.so.1", "libc"));
    CHECK_FALSE(has_file_name("/usr/lib/libc.so.6", "lib"));
    CHECK_FALSE(has_file_name("/usr/lib/libc.so.6", "usr"));
}

TEST_CASE("files of a running process") {
    const auto own = static_cast<std::uint32_t>(::getpid());
    const std::string program = std::filesystem::read_symlink("/proc/self/exe").string();
    const auto by_name = find_probe_files(program.substr(program.rfind('/') + 1), {{own}, {}, false});
    REQUIRE(by_name);
    REQUIRE(by_name->size() == 1);
    CHECK(by_name->front().path == program);
    CHECK(inode_of(by_name->front()) == inode_of(program));
    CHECK(find_probe_files(program, {{own, own}, {}, true})->size() == 1);

    // A file that is not mapped is found by its path and in the folders of programs, unless only mapped ones count.
    CHECK(inode_of(find_probe_files("/bin/true", {{own}, {}, false})->front()) == inode_of("/bin/true"));
    CHECK(inode_of(find_probe_files("true", {{own}, {}, false})->front()) == inode_of("/bin/true"));
    const auto refused = find_probe_files("/bin/true", {{own}, {}, true});
    REQUIRE_FALSE(refused);
    CHECK(refused.error().message.find("no recorded process has code of /bin/true in memory") != std::string::npos);
}

TEST_CASE("files of a command that has not started") {
    const std::string script = (std::filesystem::temp_directory_path() / "probe-files-test-program").string();
    std::ofstream(script) << "not an ELF file\n";
    const auto found = find_probe_files("probe-files-test-program", {{}, script, false});
    REQUIRE(found);
    CHECK(inode_of(found->front()) == inode_of(script));
    std::filesystem::remove(script);
}

TEST_CASE("libraries without their version") {
    const auto found = find_probe_files("libc", {});
    REQUIRE(found);
    REQUIRE(found->size() == 1);
    CHECK(found->front().path.ends_with("/libc.so.6"));
}

TEST_CASE("files that are refused") {
    for (const char* name : {"/nowhere/at/all", "nowhere-at-all", "./relative", "/dev/null", "/usr"}) {
        const auto refused = find_probe_files(name, {});
        INFO(name);
        REQUIRE_FALSE(refused);
        CHECK(refused.error().code == ErrorCode::not_found);
    }
    CHECK(find_probe_files("./relative", {}).error().message == "./relative is not an absolute path");
}
