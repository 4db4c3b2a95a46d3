// The output of --version for this build.
#include "agent/version.h"

#include <catch2/catch.hpp>
#include <fcntl.h>

#include "agent/machine.h"
#include "base/fd.h"
#include "base/hex.h"
#include "elf/elf_file.h"

using namespace flamewire;
using namespace flamewire::agent;

TEST_CASE("the build-id in memory is that of the file") {
    const UniqueFd self(::open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
    const elf::ByteSource source = elf::source_of_fd(self.get());
    const auto header = elf::read_header(source);
    REQUIRE(header);
    const auto id = elf::read_build_id(source, *header);
    REQUIRE(id);
    REQUIRE_FALSE(id->empty());
    CHECK(own_build_id() == to_hex(*id));
}

TEST_CASE("the output has version, architecture, build-id and features") {
    using Catch::Contains;
    const std::string text = version_text();
    CHECK_THAT(text, Contains("flamewire-agent " FLAMEWIRE_VERSION " " + std::string(build_architecture()) + "\n"));
    CHECK_THAT(text, Contains("build-id: " + own_build_id() + "\n"));
    CHECK_THAT(text, Contains("unwinding: frame pointers"));
    CHECK_THAT(text, Contains("compression: zstd 1."));
    CHECK_THAT(text, Contains("encryption: mbed TLS 2."));
#if defined(__x86_64__)
    CHECK_THAT(text, Contains("tables of x86_64 and x86, branch stacks"));
#elif defined(__aarch64__) || defined(__arm__)
    CHECK_THAT(text, Contains("tables of aarch64 and arm"));
#endif
}
