#include "server/source/source_lookup.h"

#include <catch2/catch.hpp>

#include <fstream>

#include "recording.h"

using namespace flamewire;
using namespace flamewire::server;
using flamewire::test::ScratchDirectory;
namespace fs = std::filesystem;

namespace {

void write(const std::string& path, const std::string& text = "int x;\n") {
    fs::create_directories(fs::path(path).parent_path());
    std::ofstream(path) << text;
}

std::string real(const std::string& path) { return fs::canonical(path).string(); }

}  // namespace

TEST_CASE("the path map goes first, and matches only whole components") {
    ScratchDirectory root;
    write(root / "src/a/main.cc");
    write(root / "other/main.cc");
    SourceLookup lookup({root / "other", "", {{"/build/app", root / "src"}}});
    CHECK(lookup.find("/build/app/a/main.cc").path == real(root / "src/a/main.cc"));
    // "/build/app" is not a path prefix of "/build/application", so the suffix finds the other file.
    CHECK(lookup.find("/build/application/a/main.cc").path == real(root / "other/main.cc"));
}

TEST_CASE("an absolute name is used unchanged only inside a root") {
    ScratchDirectory root, outside;
    write(root / "lib/x.cc");
    write(outside / "secret.cc");
    SourceLookup lookup({root.path(), "", {}});
    CHECK(lookup.find(root / "lib/x.cc").path == real(root / "lib/x.cc"));
    const SourceMatch match = lookup.find(outside / "secret.cc");
    CHECK_FALSE(match.found);
    CHECK(match.path.empty());
    CHECK(match.tried.size() >= 2);
    CHECK(match.suggestion == "--path-map " + outside.path() + "=" + real(root.path()));
    // With its folder as a root, the file is found.
    CHECK(match.outside == outside.path());
    CHECK(SourceLookup({match.outside, "", {}}).find(outside / "secret.cc").found);
    CHECK(lookup.find(outside / "no-such.cc").outside.empty());
    write(outside / ".hidden.cc");
    CHECK(lookup.find(outside / ".hidden.cc").outside.empty());
    CHECK_FALSE(lookup.find("/etc/passwd").found);
    CHECK_FALSE(lookup.find("../" + fs::path(outside.path()).filename().string() + "/secret.cc").found);
}

TEST_CASE("symbolic links do not lead out of a root") {
    ScratchDirectory root, outside;
    write(outside / "secret.cc");
    write(root / "real.cc");
    fs::create_symlink(outside / "secret.cc", root / "link.cc");
    fs::create_directory_symlink(outside.path(), root / "door");
    fs::create_symlink(root / "real.cc", root / "alias.cc");
    SourceLookup lookup({root.path(), root.path(), {{"/b", root.path()}}});
    for (const std::string name :
         {"link.cc", "door/secret.cc", "/b/link.cc", "/b/door/secret.cc", "/x/secret.cc", "/link.cc"})
        CHECK_FALSE(lookup.find(name).found);
    CHECK(lookup.find(root / "door/secret.cc").found == false);
    CHECK(lookup.find("alias.cc").path == real(root / "real.cc"));  // a link that stays inside is permitted
}

TEST_CASE("sources of an SDK: /usr/src/debug through a sysroot, whose links stay inside") {
    ScratchDirectory root, sysroot;
    write(sysroot / "usr/src/debug/app/1.0/main.c");
    write(sysroot / "opt/work/lib.c");
    fs::create_directory_symlink("/opt/work", sysroot / "usr/src/debug/lib");
    SourceLookup lookup({root.path(), sysroot.path(), {}});
    // The path to which Yocto maps DW_AT_comp_dir.
    CHECK(lookup.find("/usr/src/debug/app/1.0/main.c").path == real(sysroot / "usr/src/debug/app/1.0/main.c"));
    CHECK(lookup.find("/usr/src/debug/app/1.0/../1.0/./main.c").path == real(sysroot / "usr/src/debug/app/1.0/main.c"));
    CHECK(lookup.find("/usr/src/debug/lib/lib.c").path == real(sysroot / "opt/work/lib.c"));
    CHECK_FALSE(lookup.find("/usr/src/debug/../../../../../../etc/hostname").found);
}

TEST_CASE("the sysroot contains the target's sources") {
    ScratchDirectory root, sysroot;
    write(sysroot / "usr/src/libc/malloc.c");
    SourceLookup lookup({root.path(), sysroot.path(), {}});
    CHECK(lookup.find("/usr/src/libc/malloc.c").path == real(sysroot / "usr/src/libc/malloc.c"));
    CHECK_FALSE(lookup.find("/usr/../../../../etc/passwd").found);
}

TEST_CASE("the longest suffix wins, and a tie is reported") {
    ScratchDirectory root;
    write(root / "one/net/io.cc");
    write(root / "two/net/io.cc");
    write(root / "two/disk/io.cc");
    write(root / ".git/net/io.cc");
    SourceLookup lookup({root.path(), "", {}});
    const SourceMatch disk = lookup.find("/home/ci/two/disk/io.cc");
    CHECK(disk.path == real(root / "two/disk/io.cc"));
    CHECK(disk.note.empty());
    const SourceMatch tie = lookup.find("/home/ci/net/io.cc");
    CHECK(tie.path == real(root / "one/net/io.cc"));
    CHECK_THAT(tie.note,
               Catch::Contains("2 files") && Catch::Contains("one/net/io.cc") && Catch::Contains("two/net/io.cc"));
    CHECK_FALSE(lookup.find("/home/ci/net/nothing.cc").found);
    CHECK_FALSE(lookup.find("").found);
    CHECK_FALSE(lookup.find(std::string("io.cc\0x", 7)).found);
}

TEST_CASE("only text is shown") {
    ScratchDirectory root;
    write(root / "a.cc", std::string("a\0b", 3));
    CHECK(read_source(root / "a.cc").error().code == ErrorCode::invalid);
    write(root / "b.cc", "one\ntwo\n");
    CHECK(read_source(root / "b.cc").value() == "one\ntwo\n");
}
