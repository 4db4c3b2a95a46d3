#include "agent/process/module_cache.h"

#include <catch2/catch.hpp>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <utility>

#include "fake_proc.h"

using namespace flamewire;
using namespace flamewire::agent;
using flamewire::agent::test::FakeProc;
using flamewire::agent::test::Load;
using flamewire::agent::test::make_elf;

namespace {

MappedFile mapped(std::uint32_t pid, std::string path) {
    MappedFile file;
    file.pid = pid;
    file.start = 0x10000;
    file.end = 0x20000;
    file.path = std::move(path);
    return file;
}

}  // namespace

TEST_CASE("file offsets become the addresses of the file") {
    FakeProc proc;
    // The layout of lld: one file page contains the end of one segment and the start of the next. Each is mapped at its
    // own page.
    proc.write("root/lld", make_elf({{0, 0, 0x5f0, false},
                                     {0x5f0, 0x15f0, 0x900, true},
                                     {0xef0, 0x2ef0, 0x300, true},
                                     {0x21f0, 0x51f0, 0x100, false}},
                                    "lld-build-id"));
    proc.link("proc/42/root", proc.path("root"));
    ModuleCache modules(proc.root(), 4096);
    const ModuleHandle lld = modules.of_file(mapped(42, "/lld"));
    REQUIRE(lld != 0);
    CHECK(modules.info(lld).path == "/lld");
    CHECK(modules.info(lld).build_id == "lld-build-id");
    CHECK(modules.address_of(lld, 0x5f0) == 0x15f0);
    CHECK(modules.address_of(lld, 0xeef) == 0x1eef);
    CHECK(modules.address_of(lld, 0xef0) == 0x2ef0);  // one mapping, the next segment
    CHECK(modules.address_of(lld, 0x11ef) == 0x31ef);
    CHECK(modules.address_of(lld, 0x2200) == 0x5200);  // data that became executable later
    CHECK(modules.address_of(lld, 0x9999999) == 0x9999999);
}

TEST_CASE("pages of 64 KiB") {
    FakeProc proc;
    proc.write("root/arm", make_elf({{0, 0, 0x800, false}, {0x1'0800, 0x21'0800, 0x400, true}}, "arm"));
    proc.link("proc/42/root", proc.path("root"));
    ModuleCache modules(proc.root(), 65536);
    const ModuleHandle arm = modules.of_file(mapped(42, "/arm"));
    CHECK(modules.address_of(arm, 0x1'0900) == 0x21'0900);
    CHECK(modules.address_of(arm, 0x1'0010) == 0x21'0010);  // same page, before p_offset
}

TEST_CASE("a mapping starts and ends at page boundaries, whatever their size") {
    // The layout for 64 KiB pages: offset and address agree in the last 16 bits.
    struct Case {
        std::uint64_t page, first, last;  // file offsets of the mapping that the loader makes of [0x15800, 0x18800)
    };
    const Case kernel =
        GENERATE(Case{4'096, 0x1'5000, 0x1'9000}, Case{16'384, 0x1'4000, 0x1'c000}, Case{65'536, 0x1'0000, 0x2'0000});
    INFO(kernel.page);
    FakeProc proc;
    proc.write("root/app", make_elf({{0, 0, 0x800, false}, {0x1'5800, 0x21'5800, 0x3000, true}}, "paged"));
    proc.link("proc/42/root", proc.path("root"));
    ModuleCache modules(proc.root(), kernel.page);
    const ModuleHandle app = modules.of_file(mapped(42, "/app"));
    REQUIRE(app != 0);
    constexpr std::uint64_t base = 0x5555'0000'0000;
    const std::uint64_t start = base + 0x20'0000 + kernel.first;
    const process::Mapping mapping{start, start + (kernel.last - kernel.first), kernel.first, app};
    for (const std::uint64_t address : {start, base + 0x21'5800, base + 0x21'87ff, mapping.end - 1}) {
        const unwind::CodePiece piece = modules.piece_at(mapping, address);
        CHECK(piece.bias == base);
        CHECK((piece.start == mapping.start && piece.end == mapping.end));
    }
    CHECK(modules.address_of(app, kernel.first) == 0x20'0000 + kernel.first);
    CHECK(modules.address_of(app, kernel.last) == kernel.last);  // no part of the file is mapped there
}

TEST_CASE("one build-id is one module, whatever its names") {
    FakeProc proc;
    proc.write("root/a", make_elf({{0, 0x400000, 0x1000}}, "same"));
    proc.write("root/b", make_elf({{0, 0x400000, 0x1000}}, "same"));
    proc.write("root/c", make_elf({{0, 0x400000, 0x1000}}, ""));
    proc.write("root/d", make_elf({{0, 0x400000, 0x1000}}, ""));
    proc.link("proc/42/root", proc.path("root"));
    ModuleCache modules(proc.root(), 4096);
    const ModuleHandle a = modules.of_file(mapped(42, "/a"));
    CHECK(modules.of_file(mapped(42, "/b")) == a);
    CHECK(modules.of_file(mapped(42, "/a")) == a);
    // Without a build-id: device, inode, size, mtime.
    const ModuleHandle c = modules.of_file(mapped(42, "/c"));
    CHECK(modules.of_file(mapped(42, "/c")) == c);
    CHECK(modules.of_file(mapped(42, "/d")) != c);
    CHECK(modules.info(c).inode == proc.inode("root/c"));
    CHECK(modules.info(c).build_id.empty());
    CHECK(modules.take_notices().empty());
}

TEST_CASE("a build-id in the record makes reading the file unnecessary") {
    FakeProc proc;
    proc.write("root/a", make_elf({{0, 0x400000, 0x1000}}, "known"));
    proc.link("proc/42/root", proc.path("root"));
    ModuleCache modules(proc.root(), 4096);
    const ModuleHandle a = modules.of_file(mapped(42, "/a"));
    MappedFile gone = mapped(77, "/elsewhere");  // an exited process, in a namespace that the agent cannot access
    gone.build_id = "known";
    CHECK(modules.of_file(gone) == a);
    CHECK(modules.address_of(a, 0x10) == 0x400010);
}

TEST_CASE("map_files leads to a deleted file, its name does not") {
    FakeProc proc;
    proc.write("hidden", make_elf({{0, 0x400000, 0x1000}}, "old"));
    proc.write("root/app", make_elf({{0, 0x900000, 0x1000}}, "new"));
    proc.link("proc/42/root", proc.path("root"));
    proc.link("proc/42/map_files/10000-20000", proc.path("hidden"));
    ModuleCache modules(proc.root(), 4096);
    MappedFile app = mapped(42, "/app");
    app.deleted = true;
    const ModuleHandle old = modules.of_file(app);
    CHECK(modules.info(old).build_id == "old");
    CHECK(modules.address_of(old, 0x10) == 0x400010);

    // Without that link, the file cannot be read: the one with the same name is another file.
    app.start = 0x30000;
    app.end = 0x40000;
    app.inode = 5;
    const ModuleHandle lost = modules.of_file(app);
    CHECK(lost != old);
    CHECK(modules.info(lost).build_id.empty());
    CHECK(modules.address_of(lost, 0x10) == 0x10);
    CHECK(modules.of_file(app) == lost);
    const auto notices = modules.take_notices();
    REQUIRE(notices.size() == 1);
    CHECK(notices[0].code == "module-unreadable");
    CHECK(notices[0].text.find("/app") != std::string::npos);
}

TEST_CASE("map_files is trusted only for the library in the record") {
    FakeProc proc;
    proc.write("root/one.so", make_elf({{0, 0x1000, 0x800}}, "one"));
    proc.write("root/two.so", make_elf({{0, 0x5000, 0x800}}, "two"));
    proc.link("proc/42/root", proc.path("root"));
    // The record of one.so is handled after two.so was mapped in its place.
    proc.link("proc/42/map_files/10000-20000", proc.path("root/two.so"));
    ModuleCache modules(proc.root(), 4096);
    MappedFile one = mapped(42, "/one.so");
    one.build_id = "one";
    const ModuleHandle module = modules.of_file(one);
    CHECK(modules.info(module).build_id == "one");
    CHECK(modules.address_of(module, 0x100) == 0x1100);

    MappedFile gone = mapped(42, "/gone.so");
    gone.build_id = "gone";
    gone.deleted = true;
    CHECK(modules.address_of(modules.of_file(gone), 0x100) == 0x100);
    CHECK(modules.take_notices().size() == 1);
}

TEST_CASE("a name that now belongs to another file is refused") {
    FakeProc proc;
    proc.write("root/app", make_elf({{0, 0x900000, 0x1000}}, "new"));
    proc.link("proc/42/root", proc.path("root"));
    struct stat status{};
    REQUIRE(::stat(proc.path("root/app").c_str(), &status) == 0);
    ModuleCache modules(proc.root(), 4096);

    MappedFile by_id = mapped(42, "/app");
    by_id.build_id = "old";
    CHECK(modules.address_of(modules.of_file(by_id), 0x10) == 0x10);

    MappedFile by_inode = mapped(42, "/app");
    by_inode.device = status.st_dev;
    by_inode.inode = status.st_ino + 1;
    CHECK(modules.info(modules.of_file(by_inode)).build_id.empty());

    // On btrfs and overlayfs, maps and stat report different devices for one file. That alone is not a reason to
    // refuse.
    MappedFile other_device = mapped(42, "/app");
    other_device.device = status.st_dev + 1;
    other_device.inode = status.st_ino + 1;
    CHECK(modules.info(modules.of_file(other_device)).build_id == "new");
}

TEST_CASE("a file that the program cannot read is opened by name only if it is the mapped one") {
    FakeProc proc;
    proc.write("root/lib", make_elf({{0, 0x400000, 0x1000}}, "secret"));
    REQUIRE(::chmod(proc.path("root/lib").c_str(), 0700) == 0);
    proc.link("proc/42/root", proc.path("root"));
    const auto readable = [&](MappedFile file) {
        file.pid = 42;
        file.path = "/lib";
        ModuleCache modules(proc.root(), 4096);
        const ModuleHandle module = modules.of_file(file);
        return module != 0 && modules.address_of(module, 0x10) == 0x400010;
    };
    MappedFile file;
    CHECK_FALSE(readable(file));
    file.device = 1;  // another file system, as with overlayfs
    file.inode = proc.inode("root/lib");
    CHECK_FALSE(readable(file));
    struct stat status{};
    REQUIRE(::stat(proc.path("root/lib").c_str(), &status) == 0);
    file.device = status.st_dev;
    CHECK(readable(file));
    file = {};
    file.build_id = "secret";
    CHECK(readable(file));
    file.build_id = "another";
    CHECK_FALSE(readable(file));
    REQUIRE(::chmod(proc.path("root/lib").c_str(), 0744) == 0);
    CHECK(readable({}));
}

TEST_CASE("a file that replaces another one between check and open is not opened") {
    // Replaces the file after it was checked.
    class Race : public System {
    public:
        explicit Race(FakeProc& proc) : proc_(proc) {}
        int status(const std::string& path, bool follow_link, FileStatus& facts) override {
            const int result = System::status(path, follow_link, facts);
            if (path.ends_with("/lib") && !std::exchange(done_, true))
                REQUIRE(::rename(proc_.path("root/secret").c_str(), proc_.path("root/lib").c_str()) == 0);
            return result;
        }

    private:
        FakeProc& proc_;
        bool done_ = false;
    };
    FakeProc proc;
    proc.write("root/lib", make_elf({{0, 0x400000, 0x1000}}, "lib"));
    proc.write("root/secret", make_elf({{0, 0x800000, 0x1000}}, "secret"));
    proc.link("proc/42/root", proc.path("root"));
    Race race(proc);
    const UseSystem use(&race);
    ModuleCache modules(proc.root(), 4096, true);
    MappedFile file = mapped(42, "/lib");
    const ModuleHandle module = modules.of_file(file);
    REQUIRE(module != 0);
    CHECK(modules.info(module).build_id.empty());
    CHECK(modules.address_of(module, 0x10) == 0x10);
    CHECK_FALSE(modules.open_file(module));
}

TEST_CASE("an exited process: its parent's root, then the agent's own, if it is the same file") {
    FakeProc proc;
    proc.write("root/app", make_elf({{0, 0x400000, 0x1000}}, "x"));
    proc.link("proc/7/root", proc.path("root"));
    ModuleCache modules(proc.root(), 4096);
    MappedFile child = mapped(42, "/app");
    child.parent_pid = 7;
    CHECK(modules.info(modules.of_file(child)).build_id == "x");

    proc.write("own", make_elf({{0, 0x400000, 0x1000}}, "y"));
    MappedFile own = mapped(43, proc.path("own"));
    CHECK(modules.info(modules.of_file(own)).build_id.empty());  // it could be any file with this name
    own.inode = proc.inode("own");
    own.device = 99;
    CHECK(modules.info(modules.of_file(own)).build_id == "y");
}

TEST_CASE("an address given as a file offset remains one") {
    FakeProc proc;
    ModuleCache modules(proc.root(), 4096);
    MappedFile file = mapped(42, "/late");
    file.build_id = "late";
    const ModuleHandle late = modules.of_file(file);
    proc.write("root/late", make_elf({{0, 0x400000, 0x1000}}, "late"));
    proc.link("proc/42/root", proc.path("root"));
    SECTION("read before the first lookup") {
        CHECK(modules.of_file(file) == late);
        CHECK(modules.address_of(late, 0x10) == 0x400010);
    }
    SECTION("read too late") {
        CHECK(modules.address_of(late, 0x10) == 0x10);
        CHECK(modules.of_file(file) == late);
        CHECK(modules.address_of(late, 0x10) == 0x10);
    }
}

TEST_CASE("files that are not ELF") {
    FakeProc proc;
    proc.write("root/data", std::string(5000, 'x'));
    proc.write("hidden", std::string(5000, 'j'));
    proc.link("proc/42/root", proc.path("root"));
    proc.link("proc/42/map_files/10000-20000", proc.path("hidden"));
    ModuleCache modules(proc.root(), 4096);
    CHECK(modules.of_file(mapped(42, "/memfd:jit")) == 0);  // JIT code

    MappedFile data = mapped(42, "/data");
    data.start = 0x30000;
    const ModuleHandle named = modules.of_file(data);
    CHECK(modules.info(named).path == "/data");
    CHECK(modules.address_of(named, 0x123) == 0x123);

    // A FIFO must not block the agent, and a link must not lead out of the target's root.
    REQUIRE(::mkfifo(proc.path("root/fifo").c_str(), 0600) == 0);
    proc.link("root/link", "/bin/sh");
    MappedFile odd = mapped(42, "/fifo");
    odd.start = 0x30000;
    CHECK(modules.info(modules.of_file(odd)).build_id.empty());
    odd.path = "/link";
    CHECK(modules.info(modules.of_file(odd)).build_id.empty());
}

namespace {

std::string read_all(const elf::ByteSource& source, std::size_t size) {
    const auto bytes = source(0, size);
    return bytes ? *bytes : "error";
}

}  // namespace

TEST_CASE("a kept file is readable after its name is gone, and is refused when its content changes") {
    FakeProc proc;
    const std::string old = make_elf({{0, 0x400000, 0x1000}}, "old");
    proc.write("root/lib", old);
    proc.link("proc/42/root", proc.path("root"));
    ModuleCache modules(proc.root(), 4096, true);
    const ModuleHandle lib = modules.of_file(mapped(42, "/lib"));
    const auto source = modules.open_file(lib);
    REQUIRE(source);
    REQUIRE(read_all(*source, old.size()) == old);

    SECTION("deleted") { proc.remove("root/lib"); }
    SECTION("replaced by another file with the same name") {
        const std::string other = make_elf({{0, 0x900000, 0x1000}}, "new");
        proc.write("root/lib.new", other);
        REQUIRE(::rename(proc.path("root/lib.new").c_str(), proc.path("root/lib").c_str()) == 0);
    }
    SECTION("rewritten with the same content") {
        proc.write("root/lib", old);
        const timespec times[2] = {{1, 0}, {1, 0}};
        REQUIRE(::utimensat(AT_FDCWD, proc.path("root/lib").c_str(), times, 0) == 0);
    }
    REQUIRE(read_all(*source, old.size()) == old);
    CHECK(modules.take_notices().empty());
}

TEST_CASE("a kept file that was overwritten is no longer read, with one notice") {
    FakeProc proc;
    proc.write("root/lib", make_elf({{0, 0x400000, 0x1000}}, "old"));
    proc.link("proc/42/root", proc.path("root"));
    ModuleCache modules(proc.root(), 4096, true);
    const ModuleHandle lib = modules.of_file(mapped(42, "/lib"));
    const auto source = modules.open_file(lib);
    REQUIRE(source);
    proc.write("root/lib", make_elf({{0, 0x400000, 0x2000}}, "other"));
    REQUIRE(read_all(*source, 16) == "error");
    REQUIRE(read_all(*source, 16) == "error");
    const auto notices = modules.take_notices();
    REQUIRE(notices.size() == 1);
    CHECK(notices[0].code == "module-changed");
    CHECK_FALSE(modules.open_file(lib));
}

TEST_CASE("files are kept only on request") {
    FakeProc proc;
    proc.write("root/lib", make_elf({{0, 0x400000, 0x1000}}, "old"));
    proc.link("proc/42/root", proc.path("root"));
    ModuleCache modules(proc.root(), 4096);
    CHECK_FALSE(modules.open_file(modules.of_file(mapped(42, "/lib"))));
    CHECK_FALSE(modules.open_file(0));
    CHECK_FALSE(modules.open_file(99));
}

TEST_CASE("a piece of code is the mapping, or a segment if several share it") {
    FakeProc proc;
    proc.write("root/one", make_elf({{0, 0, 0x1000, false}, {0x1000, 0x401000, 0x1800, true}}, "one"));
    proc.write("root/lld", make_elf({{0, 0, 0x5f0, false},
                                     {0x5f0, 0x15f0, 0x900, true},
                                     {0xef0, 0x2ef0, 0x300, true},
                                     {0x21f0, 0x51f0, 0x100, false}},
                                    "lld"));
    proc.link("proc/42/root", proc.path("root"));
    ModuleCache modules(proc.root(), 4096);
    const ModuleHandle one = modules.of_file(mapped(42, "/one"));
    const auto whole = modules.piece_at({0x7f0000, 0x7f2000, 0x1000, one}, 0x7f1234);
    CHECK(whole.start == 0x7f0000);
    CHECK(whole.end == 0x7f2000);
    CHECK(whole.module == one);
    CHECK(0x7f1234 - whole.bias == 0x402234);

    const ModuleHandle lld = modules.of_file(mapped(42, "/lld"));
    const auto part = modules.piece_at({0x7f0000, 0x7f2000, 0x0, lld}, 0x7f0f00);
    CHECK(part.start == 0x7f0ef0);
    CHECK(part.end == 0x7f11f0);
    CHECK(0x7f0f00 - part.bias == 0x2f00);
    const auto before = modules.piece_at({0x7f0000, 0x7f2000, 0x0, lld}, 0x7f0eef);
    CHECK(before.start == 0x7f05f0);
    CHECK(before.end == 0x7f0ef0);
    CHECK(0x7f0eef - before.bias == 0x1eef);

    const auto anonymous = modules.piece_at({0x7f0000, 0x7f2000, 0, 0}, 0x7f0f00);
    CHECK(anonymous.module == 0);
    CHECK(anonymous.end == 0x7f2000);
}
