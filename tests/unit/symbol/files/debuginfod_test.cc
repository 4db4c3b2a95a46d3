#include "symbol/files/debuginfod.h"

#include <catch2/catch.hpp>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "base/bytes.h"
#include "base/file.h"

namespace flamewire::symbol {
namespace {

namespace fs = std::filesystem;

TEST_CASE("debuginfod: which servers are used") {
    ::unsetenv("DEBUGINFOD_URLS");
    CHECK(debuginfod_urls({})->empty());
    CHECK(*debuginfod_urls({"http://a:8002", "https://b", "http://a:8002"}) ==
          std::vector<std::string>{"http://a:8002", "https://b"});
    CHECK_FALSE(debuginfod_urls({"env"}));
    for (const char* wrong : {"", "a", "ftp://a", "http://a http://b"}) CHECK_FALSE(debuginfod_urls({wrong}));

    // Servers of the environment are used only on request. Other words are left out.
    ::setenv("DEBUGINFOD_URLS", " https://one  ima:enforcing\thttps://two ", 1);
    CHECK(debuginfod_urls({})->empty());
    CHECK(*debuginfod_urls({"http://a", "env"}) == std::vector<std::string>{"http://a", "https://one", "https://two"});
    ::setenv("DEBUGINFOD_URLS", "ima:ignore", 1);
    CHECK_FALSE(debuginfod_urls({"env"}));
    ::unsetenv("DEBUGINFOD_URLS");
}

TEST_CASE("debuginfod: the least recently used file is deleted, and the newest one stays") {
    std::string folder = (fs::temp_directory_path() / "flamewire-debuginfod-XXXXXX").string();
    REQUIRE(::mkdtemp(folder.data()) != nullptr);
    const std::string ids[] = {std::string("\x01\x01", 2), std::string("\x02\x02", 2), std::string("\x03\x03", 2)};
    time_t used = 1000;
    for (const std::string& id : ids) {
        const std::string path = debuginfod_file(folder, id);
        fs::create_directories(fs::path(path).parent_path());
        REQUIRE(replace_file(path, as_bytes_view(std::string(100'000, 'x'))));
        const timespec times[2] = {{used, 0}, {used, 0}};
        REQUIRE(::utimensat(AT_FDCWD, path.c_str(), times, 0) == 0);
        ++used;
    }
    REQUIRE(replace_file(folder + "/max_unused_age_s", as_bytes_view(std::string("604800"))));
    const auto there = [&](const std::string& id) { return fs::exists(debuginfod_file(folder, id)); };

    limit_debuginfod_folder(folder, 1'000'000, ids[0]);
    CHECK((there(ids[0]) && there(ids[1]) && there(ids[2])));
    limit_debuginfod_folder(folder, 250'000, ids[0]);
    CHECK((there(ids[0]) && !there(ids[1]) && there(ids[2])));
    limit_debuginfod_folder(folder, 1, ids[0]);
    CHECK((there(ids[0]) && !there(ids[2])));
    CHECK(fs::exists(folder + "/max_unused_age_s"));
    limit_debuginfod_folder(folder + "/none", 1, ids[0]);
    fs::remove_all(folder);
}

}  // namespace
}  // namespace flamewire::symbol
