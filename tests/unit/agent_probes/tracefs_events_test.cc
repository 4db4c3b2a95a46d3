// Names of probes in tracefs, and what the kernel shows of them.
#include "agent/probes/tracefs_events.h"

#include <catch2/catch.hpp>
#include <fcntl.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "base/fd.h"

using namespace flamewire;
using namespace flamewire::agent;

namespace {

const std::string folder = "/sys/kernel/tracing";

std::string list() {
    std::ifstream file(folder + "/uprobe_events");
    return {std::istreambuf_iterator<char>(file), {}};
}

// One write is one command, so a stream does not work.
void command(const std::string& text) {
    const UniqueFd file(::open((folder + "/uprobe_events").c_str(), O_WRONLY | O_APPEND | O_CLOEXEC));
    REQUIRE(::write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size()));
}

bool may_probe() {
    if (::access((folder + "/uprobe_events").c_str(), W_OK) == 0) return true;
    WARN("NOT tested: " << folder << "/uprobe_events cannot be written (no root, or tracefs is not mounted)");
    return false;
}

// Offset of the code of /bin/sh, which every system has: its entry point is in the executable segment.
ProbeDefinition shell_probe() {
    ProbeDefinition probe;
    probe.name = "shop::Cart::add";
    probe.path = std::filesystem::canonical("/bin/sh").string();
    probe.offset = 0x5000;
    return probe;
}

}  // namespace

TEST_CASE("the group of a recording names the agent") {
    const TracefsOwner owner{0xf0000001, 0x4d2, 0x123456};
    const std::string group = tracefs_group(owner, 3);
    CHECK(group == "flamewire_f0000001_4d2_123456_3");
    const auto parsed = tracefs_owner(group);
    REQUIRE(parsed);
    CHECK(parsed->pid_namespace == owner.pid_namespace);
    CHECK(parsed->pid == owner.pid);
    CHECK(parsed->start_ticks == owner.start_ticks);
    for (const char* other : {"uprobes", "flamewire_", "flamewire_1_2_3", "flamewire_1_2_3_4_5", "flamewire_x_2_3_4",
                              "flamewire_1_2_3_4x", "probe_libc"})
        CHECK_FALSE(tracefs_owner(other));
    // The kernel's limit is 63 bytes.
    CHECK(tracefs_group({UINT32_MAX, UINT32_MAX, UINT32_MAX}, UINT32_MAX).size() < 64);
}

TEST_CASE("a probe in tracefs ends with its owner") {
    if (!may_probe()) return;
    std::string group;
    {
        TracefsEvents events(folder);
        group = events.group();
        ProbeDefinition probe = shell_probe();
        probe.arguments = {{"size", "%si:u64"}};
        const auto name = events.add(probe);
#if defined(__x86_64__)
        if (!name) FAIL(name.error().message);
        CHECK(*name == "p0_shop__Cart__add");
        const std::string line =
            "p:" + group + "/p0_shop__Cart__add " + probe.path + ":0x0000000000005000 size=%si:u64";
        CHECK(list().find(line) != std::string::npos);
#endif
        // The kernel's own reason is in the sentence.
        probe.arguments = {{"size", "%nosuch:u64"}};
        const auto refused = events.add(probe);
        REQUIRE_FALSE(refused);
        CHECK(refused.error().message.find("shop::Cart::add at offset 0x5000: ") != std::string::npos);
        CHECK(refused.error().message.find("nvalid") != std::string::npos);
    }
    CHECK(list().find(group) == std::string::npos);
}

TEST_CASE("probes of agents that have ended are removed") {
    if (!may_probe()) return;
    TracefsEvents alive(folder);
    REQUIRE(alive.add(shell_probe()));
    TracefsOwner gone = *tracefs_owner(alive.group());
    gone.start_ticks += 1;  // the pid was reused
    const std::string group = tracefs_group(gone, 1);
    TracefsOwner elsewhere = gone;
    elsewhere.pid_namespace += 1;
    const std::string other = tracefs_group(elsewhere, 1);
    for (const std::string& each : {group, other}) command("p:" + each + "/p0_x " + shell_probe().path + ":0x5000\n");
    REQUIRE(list().find(group) != std::string::npos);
    CHECK(remove_stale_events(folder) >= 1);
    CHECK(list().find(group) == std::string::npos);
    CHECK(list().find(other) != std::string::npos);
    CHECK(list().find(alive.group()) != std::string::npos);
    command("-:" + other + "/p0_x\n");
}
