#include "base/descriptor_table.h"

#include <catch2/catch.hpp>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "base/file.h"

using namespace flamewire;

namespace {

// The kernel's number for this process.
unsigned long slots() {
    const auto status = read_file("/proc/self/status", 1 << 16);
    REQUIRE(status);
    const std::string name = "FDSize:";
    const std::size_t at = status->find(name);
    REQUIRE(at != std::string::npos);
    return std::strtoul(status->c_str() + at + name.size(), nullptr, 10);
}

}  // namespace

TEST_CASE("the descriptor table grows as far as the limit permits, and no descriptor stays open") {
    rlimit before{};
    REQUIRE(::getrlimit(RLIMIT_NOFILE, &before) == 0);
    const rlimit low{256, before.rlim_max};
    REQUIRE(::setrlimit(RLIMIT_NOFILE, &low) == 0);
    const int next = ::dup(0);
    REQUIRE(next >= 0);
    ::close(next);
    prepare_descriptors(1'000);
    rlimit raised{};
    REQUIRE(::getrlimit(RLIMIT_NOFILE, &raised) == 0);
    CHECK(raised.rlim_cur == before.rlim_max);
    CHECK(slots() >= 1'000);
    const int again = ::dup(0);
    CHECK(again == next);
    ::close(again);
    REQUIRE(::setrlimit(RLIMIT_NOFILE, &before) == 0);
}
