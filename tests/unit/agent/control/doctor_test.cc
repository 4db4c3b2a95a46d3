#include "agent/control/doctor.h"

#include <catch2/catch.hpp>

using namespace flamewire::agent;

namespace {

const Machine machine{.host = "board", .arch = "aarch64", .kernel_release = "6.1", .boot_id = {}, .cpus = 4};

}  // namespace

TEST_CASE("a report has one line per capability, and one for all events with the same problem") {
    const std::vector<Diagnostic> diagnostics{
        {"perf-events", {}, true, "Own processes can be profiled", {}},
        {"event", "cycles", false, "this CPU or kernel has no event cycles", {}},
        {"kernel-samples", {}, false, "Kernel functions are not sampled", "sysctl -w x=1"},
        {"event", "LLC-loads", false, "this CPU or kernel has no event LLC-loads", {}},
        {"event", "instructions", false, "event instructions opens but never counts on this CPU", {}},
    };
    const Diagnosis diagnosis = diagnose(machine, diagnostics);
    CHECK(diagnosis.text == "flamewire-agent " FLAMEWIRE_VERSION
                            " on board: Linux 6.1, aarch64, 4 CPUs\n"
                            "ok       Own processes can be profiled\n"
                            "missing  cycles, LLC-loads: this CPU or kernel has no such event\n"
                            "limited  Kernel functions are not sampled. Try: sysctl -w x=1\n"
                            "missing  instructions: such event opens but never counts on this CPU\n");
    CHECK_FALSE(diagnosis.healthy);
}

TEST_CASE("healthy means that nothing can be improved here") {
    CHECK(diagnose(machine, {}).healthy);
    const std::vector<Diagnostic> no_lbr{{"lbr", {}, false, "lbr needs another CPU", {}}};
    CHECK(diagnose(machine, no_lbr).healthy);
    const std::vector<Diagnostic> nothing{{"perf-events", {}, false, "this kernel has no perf_event_open", {}}};
    CHECK_FALSE(diagnose(machine, nothing).healthy);
}
