// Launching a command: nothing runs before exec(), failures have their errno, and the exit code is that of the command.
#include "agent/control/launch.h"

#include <catch2/catch.hpp>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <filesystem>

using namespace flamewire::agent;

namespace {

int wait_for(LaunchedCommand& command) {
    for (int i = 0; i < 2000; ++i) {
        if (const auto code = command.poll_exit()) return *code;
        ::usleep(5000);
    }
    return -1;
}

}  // namespace

TEST_CASE("a command starts at exec() and returns its code") {
    auto command = LaunchedCommand::prepare({"sh", "-c", "exit 7"});
    REQUIRE(command.has_value());
    CHECK(std::filesystem::read_symlink("/proc/" + std::to_string(command->pid()) + "/exe") ==
          std::filesystem::read_symlink("/proc/self/exe"));
    CHECK_FALSE(command->poll_exit().has_value());
    REQUIRE(command->exec().has_value());
    CHECK(wait_for(*command) == 7);
    CHECK(command->poll_exit() == 7);  // still available
}

TEST_CASE("a signal gives 128 + its number") {
    auto command = LaunchedCommand::prepare({"sleep", "100"});
    REQUIRE(command.has_value());
    REQUIRE(command->exec().has_value());
    command->signal(SIGTERM);
    CHECK(wait_for(*command) == 128 + SIGTERM);
}

TEST_CASE("a failed exec has its error") {
    auto missing = LaunchedCommand::prepare({"/no/such/program"});
    REQUIRE(missing.has_value());
    auto failed = missing->exec();
    REQUIRE_FALSE(failed.has_value());
    CHECK(failed.error().errno_value == ENOENT);
    CHECK(failed.error().message == "cannot run '/no/such/program': No such file or directory");

    auto directory = LaunchedCommand::prepare({"/"});
    REQUIRE(directory.has_value());
    failed = directory->exec();
    REQUIRE_FALSE(failed.has_value());
    CHECK(failed.error().errno_value == EACCES);
}

TEST_CASE("a command that is never released does not run") {
    const std::string mark = std::filesystem::temp_directory_path() / ("launch_test_" + std::to_string(::getpid()));
    {
        auto command = LaunchedCommand::prepare({"touch", mark});
        REQUIRE(command.has_value());
    }
    CHECK_FALSE(std::filesystem::exists(mark));
}
