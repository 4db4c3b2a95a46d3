#include "base/file.h"

#include <catch2/catch.hpp>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "base/clock.h"

using namespace flamewire;

namespace {

struct TemporaryFile {
    std::string path = "/tmp/flamewire-file-test-XXXXXX";
    UniqueFd fd{::mkstemp(path.data())};
    ~TemporaryFile() { ::unlink(path.c_str()); }
};

}  // namespace

TEST_CASE("files are read completely, in ranges, and up to a limit") {
    TemporaryFile file;
    const std::string content(200'000, 'x');
    REQUIRE(write_all(file.fd.get(), as_bytes_view(content)).value() == content.size());
    CHECK(read_file(file.path).value() == content);
    CHECK(read_file(file.path, 100'000).error().code == ErrorCode::too_large);
    CHECK(read_range(file.fd.get(), 199'990, 100).value() == std::string(10, 'x'));
    CHECK(read_range(file.fd.get(), 500'000, 100).value().empty());
}

TEST_CASE("files of /proc have no size and are read all the same") {
    CHECK(read_file("/proc/self/status").value().find("Pid:") != std::string::npos);
}

TEST_CASE("the error of a missing file names it") {
    const auto missing = read_file("/no/such/file");
    REQUIRE_FALSE(missing.has_value());
    CHECK(missing.error().message == "open /no/such/file: No such file or directory");
    CHECK(missing.error().code == ErrorCode::not_found);
}

TEST_CASE("new folders are accessible only for their owner") {
    std::string root = "/tmp/flamewire-folder-test-XXXXXX";
    REQUIRE(::mkdtemp(root.data()) != nullptr);
    REQUIRE(::chmod(root.c_str(), 0755) == 0);
    const auto mode_of = [](const std::string& path) {
        struct stat status{};
        return ::stat(path.c_str(), &status) == 0 ? status.st_mode & 0777U : 0U;
    };
    CHECK(make_private_folders(root + "//a/b/"));
    CHECK(make_private_folders(root + "/a/c"));
    CHECK(make_private_folders(root));
    for (const char* made : {"/a", "/a/b", "/a/c"}) CHECK(mode_of(root + made) == 0700);
    CHECK(mode_of(root) == 0755);
    UniqueFd(::open((root + "/file").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    const auto refused = make_private_folders(root + "/file/d");
    REQUIRE_FALSE(refused);
    CHECK(refused.error().errno_value == ENOTDIR);
    CHECK(refused.error().message.contains("cannot create " + root + "/file"));
    for (const char* left : {"/file", "/a/b", "/a/c", "/a", ""}) CHECK(::remove((root + left).c_str()) == 0);
}

TEST_CASE("a descriptor has one owner") {
    UniqueFd first(::dup(0));
    const int number = first.get();
    UniqueFd second = std::move(first);
    CHECK(second.get() == number);
    CHECK_FALSE(first);  // NOLINT(bugprone-use-after-move): the test checks the moved-from state
    second.reset();
    CHECK(::close(number) == -1);
}

TEST_CASE("clocks run") {
    const std::uint64_t before = monotonic_ns();
    CHECK(monotonic_ns() >= before);
    CHECK(realtime_ns() > 1'500'000'000'000'000'000);
    CHECK(process_cpu_ns() > 0);
}
