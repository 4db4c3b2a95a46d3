// Possible replies of PREFIXgcc, from scripts, and the cross compiler of Debian.
#include "server/source/toolchain.h"

#include <catch2/catch.hpp>
#include <unistd.h>

#include <filesystem>
#include <fstream>

using namespace flamewire;
using namespace flamewire::server;
namespace fs = std::filesystem;

namespace {

class Sdk {
public:
    Sdk() : root_(fs::temp_directory_path() / ("flamewire-sdk-" + std::to_string(::getpid()))) {
        fs::create_directories(root_ / "bin");
        fs::create_directories(root_ / "target");
    }
    ~Sdk() { fs::remove_all(root_); }
    Sdk(const Sdk&) = delete;
    Sdk& operator=(const Sdk&) = delete;

    // Creates bin/NAME-gcc, which runs `script`, and returns its prefix.
    [[nodiscard]] std::string compiler(const std::string& name, const std::string& script) const {
        const fs::path path = root_ / "bin" / (name + "-gcc");
        std::ofstream(path) << "#!/bin/sh\n" << script << '\n';
        fs::permissions(path, fs::perms::owner_all);
        return (root_ / "bin" / (name + "-")).string();
    }
    [[nodiscard]] std::string folder(const std::string& name) const { return (root_ / name).string(); }

private:
    fs::path root_;
};

std::string error_message(const std::string& prefix, std::chrono::milliseconds patience = std::chrono::seconds(10)) {
    const auto result = sysroot_of_toolchain(prefix, patience);
    REQUIRE_FALSE(result);
    return result.error().message;
}

}  // namespace

TEST_CASE("a cross compiler is run for its sysroot, without a shell, and only for that") {
    const Sdk sdk;
    const std::string good =
        sdk.compiler("good", "[ $# = 1 ] && [ \"$1\" = -print-sysroot ] && echo " + sdk.folder("bin/../target"));
    CHECK(sysroot_of_toolchain(good).value() == sdk.folder("target"));
    fs::create_directory(sdk.folder("a b;echo"));
    const std::string odd = sdk.compiler("x;touch y", "echo '" + sdk.folder("a b;echo") + "'");
    CHECK(sysroot_of_toolchain(odd).value() == sdk.folder("a b;echo"));
}

TEST_CASE("for a compiler without a sysroot, the usual places beside it are tried") {
    const Sdk sdk;
    for (const char* answer : {"true", "echo /", "echo /no/such/folder", "exit 3", "echo relative"}) {
        const std::string prefix = sdk.compiler("arm-test-linux", answer);
        INFO(answer);
        CHECK(error_message(prefix).find("--sysroot DIR") != std::string::npos);
        fs::create_directories(sdk.folder("arm-test-linux/sysroot"));
        CHECK(sysroot_of_toolchain(prefix).value() == sdk.folder("arm-test-linux/sysroot"));
        fs::remove_all(sdk.folder("arm-test-linux"));
    }
    // Debian's compiler prints "/", which is this machine.
    CHECK(sysroot_of_toolchain("arm-linux-gnueabihf-").value() == "/usr/arm-linux-gnueabihf");
}

TEST_CASE("a failing compiler causes one sentence with the remedy") {
    const Sdk sdk;
    CHECK(error_message("no-such-compiler-") ==
          "no-such-compiler-gcc cannot be started: No such file or directory; give the prefix with its folder, as in "
          "/opt/sdk/bin/arm-linux-gnueabihf-, or the sysroot itself with --sysroot");
    CHECK(error_message(sdk.compiler("three", "exit 3")).find("ends with status 3") != std::string::npos);
    CHECK(error_message(sdk.compiler("quiet", "true")).find("names none") != std::string::npos);
    CHECK(error_message(sdk.compiler("lost", "echo /no/such")).find("names /no/such,") != std::string::npos);
    CHECK(error_message("").find("prefix") != std::string::npos);
    CHECK(error_message(std::string(5000, 'x')).find("prefix") != std::string::npos);
}

TEST_CASE("a compiler that does not exit, or prints without end, is killed") {
    const Sdk sdk;
    const std::chrono::milliseconds patience(200);
    CHECK(error_message(sdk.compiler("slow", "sleep 600"), patience).find("does not answer in time") !=
          std::string::npos);
    CHECK(error_message(sdk.compiler("closed", "exec >&-; sleep 600"), patience).find("does not answer in time") !=
          std::string::npos);
    CHECK(error_message(sdk.compiler("loud", "while :; do echo " + sdk.folder("target") + "; done")).find("too long") !=
          std::string::npos);
}
