// Files from agents: resumed, verified, bounded.
#include "server/session/module_store.h"

#include <catch2/catch.hpp>
#include <fcntl.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "base/file.h"
#include "elf/elf_file.h"
#include "recording.h"
#include "server/limits.h"
#include "symbol/files/fetched_file.h"
#include "symbol/symbolizer.h"

using namespace flamewire;
using namespace flamewire::server;
using flamewire::test::ScratchDirectory;
namespace fs = std::filesystem;

namespace {

// The first 64 KiB and the end of this program, as the stream of a file.
class Sent {
public:
    Sent() : file_(read_file("/proc/self/exe", std::size_t{1} << 30).value()) {
        const elf::ByteSource source = elf::source_of_bytes(as_bytes_view(file_));
        module.build_id = elf::read_build_id(source, elf::read_header(source).value()).value();
        module.path = "/usr/bin/sent";
        module.size = file_.size();
        ranges_ = {{0, 65'536}, {file_.size() - 1000, 1000}};
        stream_ = file_.substr(0, 65'536) + file_.substr(file_.size() - 1000);
    }
    [[nodiscard]] wire::ModuleChunk chunk(std::uint64_t offset, std::size_t bytes) const {
        return {"1", file_.size(), offset, stream_.size(), ranges_, "", stream_.substr(offset, bytes)};
    }
    [[nodiscard]] const std::string& file() const { return file_; }
    [[nodiscard]] std::uint64_t total() const { return stream_.size(); }
    [[nodiscard]] std::string hash() const {
        char text[17];
        std::snprintf(text, sizeof text, "%016llx",
                      static_cast<unsigned long long>(wire::content_hash(wire::content_hash_begin, stream_)));
        return text;
    }

    symbol::ModuleIdentity module;

private:
    std::string file_, stream_;
    std::vector<wire::FileRange> ranges_;
};

}  // namespace

TEST_CASE("a received file is whole, has holes, and resumes after an interruption") {
    const ScratchDirectory data;
    const Sent sent;
    const std::string folder = data / "modules";
    {
        ModuleStore store(folder);
        CHECK(store.offset(sent.module) == 0);
        CHECK(store.add(sent.module, sent.chunk(0, 30'000))->got == 30'000);
        CHECK(store.add(sent.module, sent.chunk(30'000, 1))->got == 30'001);
    }
    ModuleStore store(folder);
    CHECK(store.offset(sent.module) == 30'001);
    const auto last = store.add(sent.module, sent.chunk(30'001, sent.total())).value();
    CHECK(last.whole);
    CHECK(last.got == sent.total());
    const std::string path = folder + "/" + symbol::fetched_name(sent.module);
    const std::string kept = read_file(path, std::size_t{1} << 30).value();
    REQUIRE(kept.size() == sent.file().size());
    CHECK(kept.substr(0, 65'536) == sent.file().substr(0, 65'536));
    CHECK(kept.substr(kept.size() - 1000) == sent.file().substr(kept.size() - 1000));
    CHECK(kept.substr(65'536, 100'000) == std::string(100'000, '\0'));
    struct stat status{};
    REQUIRE(::stat(path.c_str(), &status) == 0);
    CHECK((status.st_mode & 0777) == 0600);
    CHECK(static_cast<std::size_t>(status.st_blocks) * 512 < sent.file().size());
    CHECK(std::distance(fs::directory_iterator(folder), fs::directory_iterator()) == 1);
}

TEST_CASE("a part of another stream starts the file again") {
    const ScratchDirectory data;
    const Sent sent;
    ModuleStore store(data / "modules");
    CHECK(store.add(sent.module, sent.chunk(500, 100))->got == 0);
    CHECK(store.add(sent.module, sent.chunk(0, 1000))->got == 1000);
    CHECK(store.add(sent.module, sent.chunk(999, 100))->got == 0);
    CHECK(store.offset(sent.module) == 0);
    CHECK(store.add(sent.module, sent.chunk(0, 1000))->got == 1000);
    wire::ModuleChunk shorter = sent.chunk(0, 0);
    shorter.total = 900;
    shorter.ranges = {{0, 900}};
    CHECK(store.add(sent.module, shorter)->got == 0);
}

TEST_CASE("a file that is not the module is not kept") {
    const ScratchDirectory data;
    Sent sent;
    ModuleStore store(data / "modules");
    symbol::ModuleIdentity other = sent.module;
    other.build_id = "another build-id";
    CHECK(store.add(other, sent.chunk(0, sent.total())).error().message.find("another build-id") != std::string::npos);
    CHECK(store.offset(other) == 0);
    CHECK(fs::is_empty(data / "modules"));

    // Without a build-id, the agent's hash of the whole decides after the last byte. This file has a build-id, so it
    // never matches.
    other.build_id.clear();
    CHECK_FALSE(store.add(other, sent.chunk(0, sent.total()))->whole);
    wire::ModuleChunk end = sent.chunk(sent.total(), 0);
    end.hash = "0000000000000000";
    CHECK(store.add(other, end).error().message.find("differs from what the agent read") != std::string::npos);
    CHECK_FALSE(store.add(other, sent.chunk(0, sent.total()))->whole);
    end.hash = sent.hash();
    CHECK(store.add(other, end).error().message.find("another build-id") != std::string::npos);
    CHECK(fs::is_empty(data / "modules"));
}

TEST_CASE("files without a build-id have distinct names") {
    symbol::ModuleIdentity module;
    module.path = "/usr/bin/a";
    const std::string name = symbol::fetched_name(module);
    module.mtime_ns = 1;
    CHECK(symbol::fetched_name(module) != name);
    module.mtime_ns = 0;
    module.size = 1;
    CHECK(symbol::fetched_name(module) != name);
    module.path = "/../../etc/passwd";
    CHECK(symbol::fetched_name(module).find_first_of("/.") == std::string::npos);
    module.build_id = "\x01\xab";
    CHECK(symbol::fetched_name(module) == "01ab");
}

TEST_CASE("least recently used files make room for new ones, never the new one itself") {
    const ScratchDirectory data;
    const Sent sent;
    const std::string folder = data / "modules";
    fs::create_directories(folder);
    for (const char* name : {"old", "older", "young"}) std::ofstream(folder + "/" + name) << std::string(100'000, 'x');
    const auto age = [&](const char* name, std::int64_t seconds) {
        const timespec times[2] = {{seconds, 0}, {seconds, 0}};
        REQUIRE(::utimensat(AT_FDCWD, (folder + "/" + name).c_str(), times, 0) == 0);
    };
    age("old", 2000);
    age("older", 1000);
    age("young", 3000);
    ModuleStore store(folder, 300'000);
    const std::uint64_t before = times_reached(Limit::module_bytes);
    CHECK(store.add(sent.module, sent.chunk(0, sent.total()))->whole);
    CHECK(times_reached(Limit::module_bytes) == before + 1);
    CHECK_FALSE(fs::exists(folder + "/older"));
    CHECK(fs::exists(folder + "/old"));
    CHECK(fs::exists(folder + "/young"));
    ModuleStore tiny(folder, 1);
    CHECK_FALSE(tiny.add(sent.module, sent.chunk(0, 10))->whole);
    CHECK(tiny.add(sent.module, sent.chunk(10, sent.total()))->whole);
    CHECK(std::distance(fs::directory_iterator(folder), fs::directory_iterator()) == 1);
    CHECK(fs::exists(folder + "/" + symbol::fetched_name(sent.module)));
}
