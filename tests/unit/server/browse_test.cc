#include "server/source/browse.h"

#include <catch2/catch.hpp>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "recording.h"

using namespace flamewire;
using namespace flamewire::server;
using flamewire::test::ScratchDirectory;
namespace fs = std::filesystem;

namespace {

void write(const std::string& path, const std::string& text = "text\n") {
    fs::create_directories(fs::path(path).parent_path());
    std::ofstream(path, std::ios::binary) << text;
}

std::string real(const std::string& path) { return fs::canonical(path).string(); }

std::vector<std::string> names(const Listing& listing) {
    std::vector<std::string> result;
    for (const BrowseEntry& entry : listing.entries) result.push_back(entry.name);
    return result;
}

const BrowseEntry& entry_of(const Listing& listing, const std::string& name) {
    for (const BrowseEntry& entry : listing.entries)
        if (entry.name == name) return entry;
    FAIL("no entry " + name);
    throw;
}

void put(std::string& bytes, std::size_t at, std::uint64_t value, std::size_t size) {
    for (std::size_t i = 0; i < size; ++i) bytes[at + i] = static_cast<char>(value >> (8 * i));
}

// A 64-bit little-endian file for EM_AARCH64 (183) with one PT_NOTE that contains a build-id, written by hand from the
// gABI.
std::string small_elf() {
    std::string bytes(64 + 56 + 20, '\0');
    bytes.replace(0, 7,
                  std::string("\x7f"
                              "ELF\x02\x01\x01",
                              7));
    put(bytes, 16, 2, 2);
    put(bytes, 18, 183, 2);
    put(bytes, 32, 64, 8);
    put(bytes, 54, 56, 2);
    put(bytes, 56, 1, 2);
    put(bytes, 64, 4, 4);
    put(bytes, 64 + 8, 120, 8);
    put(bytes, 64 + 32, 20, 8);
    put(bytes, 120, 4, 4);
    put(bytes, 124, 4, 4);
    put(bytes, 128, 3, 4);
    bytes.replace(132, 8, std::string("GNU\0\xde\xad\xbe\xef", 8));
    return bytes;
}

}  // namespace

TEST_CASE("a folder is listed with folders first, sizes, and facts about ELF files") {
    ScratchDirectory root;
    write(root / "b.txt", "12345");
    write(root / "a.bin", small_elf());
    fs::create_directories(root / "zoo");
    fs::create_symlink(root / "b.txt", root / "c-link");
    ::mkfifo((root / "pipe").c_str(), 0600);
    const auto roots = browse_roots({root.path()});
    const Listing listing = browse(roots, root.path()).value();
    CHECK(listing.path == real(root.path()));
    CHECK(listing.parent.empty());
    CHECK(names(listing) == std::vector<std::string>{"zoo", "a.bin", "b.txt", "c-link", "pipe"});
    CHECK(entry_of(listing, "b.txt") == BrowseEntry{"b.txt", EntryKind::file, 5, false, false, {}});
    CHECK(entry_of(listing, "c-link") == BrowseEntry{"c-link", EntryKind::file, 5, true, false, {}});
    CHECK(entry_of(listing, "pipe").kind == EntryKind::other);
    CHECK(entry_of(listing, "a.bin").elf == ElfSummary{"aarch64", "deadbeef", false, false});
    CHECK(names(browse(roots, root.path(), "B").value()) == std::vector<std::string>{"a.bin", "b.txt"});
    // The path of a file lists its folder.
    CHECK(browse(roots, root / "b.txt").value().path == real(root.path()));
    const Listing inner = browse(roots, root / "zoo").value();
    CHECK(inner.parent == real(root.path()));
    CHECK(inner.entries.empty());
    CHECK(names(browse(roots, "").value()) == std::vector<std::string>{real(root.path())});
}

TEST_CASE("nothing outside of the roots is revealed") {
    ScratchDirectory inside, outside;
    write(outside / "secret.key", "1234567");
    fs::create_directories(outside / "folder");
    fs::create_directories(inside / "sub");
    fs::create_symlink(outside.path(), inside / "way-out");
    fs::create_symlink("../" + fs::path(outside.path()).filename().string() + "/secret.key", inside / "file-out");
    fs::create_symlink("/no/such/place", inside / "nowhere");
    fs::create_symlink("round", inside / "round");
    const auto roots = browse_roots({inside.path()});
    for (const std::string& path :
         {outside.path(), outside / "folder", inside / "way-out", inside / "way-out/folder", inside / "sub/../..",
          inside / "../" + fs::path(outside.path()).filename().string(), std::string("/"), std::string("/etc"),
          inside.path() + "x", std::string("//etc"), inside / "file-out"}) {
        const auto listing = browse(roots, path);
        INFO(path);
        REQUIRE_FALSE(listing);
        CHECK(listing.error().code == ErrorCode::permission);
        CHECK(listing.error().message.find("--browse-root") != std::string::npos);
    }
    const Listing listing = browse(roots, inside.path()).value();
    for (const char* name : {"way-out", "file-out", "nowhere", "round"})
        CHECK(entry_of(listing, name) == BrowseEntry{name, EntryKind::other, 0, true, true, {}});
    // ".." is resolved in the text, before any link is followed.
    CHECK(browse(roots, inside / "way-out/../sub").value().path == real(inside / "sub"));
    CHECK(browse(roots, "relative").error().code == ErrorCode::invalid);
    CHECK(browse(roots, inside / "gone").error().code == ErrorCode::not_found);
    CHECK(browse({}, inside.path()).error().code == ErrorCode::permission);
    CHECK(browse({}, "").value().entries.empty());
    CHECK(browse(roots, "/" + std::string(5000, 'a')).error().code == ErrorCode::invalid);
}

TEST_CASE("absolute links in a copy of another machine's files refer to that copy") {
    ScratchDirectory sysroot;
    write(sysroot / "real-lib/libx.so", small_elf());
    fs::create_symlink("/real-lib", sysroot / "lib");
    const auto roots = browse_roots({sysroot.path()});
    CHECK(browse(roots, sysroot / "lib").value().path == real(sysroot / "real-lib"));
    CHECK(entry_of(browse(roots, sysroot.path()).value(), "lib").kind == EntryKind::folder);
}

TEST_CASE("a root that is a link has both names") {
    ScratchDirectory scratch;
    fs::create_directories(scratch / "real/sub");
    fs::create_symlink(scratch / "real", scratch / "name");
    const auto roots = browse_roots({scratch / "name", scratch / "missing"});
    REQUIRE(roots.size() == 1);
    CHECK(browse(roots, scratch / "name/sub").value().path == real(scratch / "real/sub"));
    CHECK(browse(roots, scratch / "real").value().path == real(scratch / "real"));
    // Nested and repeated roots become one.
    CHECK(browse_roots({scratch / "real/sub", scratch / "real", scratch / "real"}).size() == 1);
}

TEST_CASE("a listing is bounded, and has the number of omitted entries") {
    ScratchDirectory root;
    for (int i = 0; i < 1005; ++i) write(root / ("f" + std::to_string(10'000 + i)), "");
    std::ofstream(root / "bad\xff") << "x";
    const auto roots = browse_roots({root.path()});
    const Listing listing = browse(roots, root.path()).value();
    CHECK(listing.entries.size() == max_browse_entries);
    CHECK(listing.entries.front().name == "f10000");
    CHECK(listing.left_out == 6);
    CHECK(names(browse(roots, root.path(), "f11004").value()) == std::vector<std::string>{"f11004"});
}

TEST_CASE("machines have their usual names") {
    CHECK(machine_name(62, true) == "x86_64");
    CHECK(machine_name(40, false) == "arm");
    CHECK(machine_name(243, true) == "riscv64");
    CHECK(machine_name(999, true) == "machine 999");
}
