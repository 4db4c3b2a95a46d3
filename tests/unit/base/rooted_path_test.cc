#include "base/rooted_path.h"

#include <catch2/catch.hpp>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

using namespace flamewire;
namespace fs = std::filesystem;

TEST_CASE("links in another root file system are resolved inside of it") {
    std::string root = "/tmp/flamewire-root-test-XXXXXX";
    REQUIRE(::mkdtemp(root.data()) != nullptr);
    fs::create_directories(root + "/usr/lib/arm");
    std::ofstream(root + "/usr/lib/arm/libc-2.36.so") << "x";
    fs::create_symlink("/usr/lib", root + "/lib");                               // absolute, as in a merged /usr
    fs::create_symlink("arm/libc-2.36.so", root + "/usr/lib/libc.so.6");         // relative
    fs::create_symlink("/lib/libc.so.6", root + "/usr/lib/libc.so");             // across both
    fs::create_symlink("../../../../../../lib/libc.so.6", root + "/usr/climb");  // the parent of the root is the root
    fs::create_symlink("/round/b", root + "/round");
    const std::string file = root + "/usr/lib/arm/libc-2.36.so";
    for (const char* path : {"/usr/lib/arm/libc-2.36.so", "/lib/libc.so.6", "/lib/libc.so", "/lib/../lib//./libc.so",
                             "/usr/climb", "/../../lib/libc.so.6", "lib/libc.so.6"}) {
        INFO(path);
        CHECK(path_in_root(root, path) == file);
        CHECK(path_in_root(root + "/", path) == file);
    }
    CHECK(path_in_root(root, "/no/such/file") == root + "/no/such/file");
    CHECK(path_in_root(root, "/") == root + "/");
    CHECK(path_in_root(root, "").size() == root.size() + 1);
    CHECK(path_in_root(root, "/round").empty());
    fs::remove_all(root);
}
