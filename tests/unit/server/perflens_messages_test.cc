// The conversion of a hello from PerfLens 0.10.
#include "server/link/perflens_messages.h"

#include <catch2/catch.hpp>

#include "wire/control.h"

using namespace flamewire;
using namespace flamewire::server;

namespace {

constexpr const char* text =
    R"({"type":"hello","agent":"perflens","agent_version":"0.10.1","platform":{"arch":"armv7l","kernel":"5.10.9",)"
    R"("perf_event_paranoid":2}})";

}  // namespace

TEST_CASE("a hello of PerfLens has the same fields as a Flamewire one") {
    const auto hello = wire::parse_object(text).value();
    REQUIRE(is_perflens_hello(hello));
    CHECK_FALSE(is_perflens_hello(wire::parse_object(R"({"type":"hello","agent":"flamewire"})").value()));
    CHECK_FALSE(is_perflens_hello(wire::parse_object(R"({"type":"reply","agent":"perflens"})").value()));
    const wire::Hello ours = wire::parse_hello(hello_of_perflens(hello)).value();
    CHECK(ours.agent == "perflens");
    CHECK(ours.agent_version == "0.10.1");
    CHECK(ours.platform.arch == "armv7l");
    CHECK(ours.platform.kernel == "5.10.9");
    CHECK(ours.platform.perf_event_paranoid == 2);
    CHECK(ours.capabilities.unwind_modes == std::vector<std::string>{"auto"});
}

TEST_CASE("a recording of PerfLens has the facts of its hello") {
    const wire::Recording about = recording_of_perflens(wire::parse_object(text).value(), "board");
    CHECK(about.target == "PerfLens");
    CHECK(about.host == "board");
    CHECK(about.agent_version == "PerfLens 0.10.1");
    CHECK(about.arch == "armv7l");
    CHECK(about.kernel_release == "5.10.9");
    const wire::Recording bare = recording_of_perflens(wire::parse_object(R"({"platform":7})").value(), "board");
    CHECK(bare.arch.empty());
    CHECK(bare.kernel_release.empty());
}
