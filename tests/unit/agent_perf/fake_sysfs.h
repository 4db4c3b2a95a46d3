// A tree of sysfs files in memory.
#pragma once

#include <map>
#include <set>
#include <string>

#include "agent/perf/event_spec.h"

namespace flamewire::agent {

using FakeTree = std::map<std::string, std::string>;  // path below /sys -> content

inline Sysfs fake_sysfs(FakeTree tree) {
    return {[tree](const std::string& path) -> Result<std::string> {
                const auto found = tree.find(path);
                if (found == tree.end()) return fail(ErrorCode::not_found, "no file " + path);
                return found->second;
            },
            [tree](const std::string& path) -> Result<std::vector<std::string>> {
                std::set<std::string> names;
                for (const auto& [file, content] : tree)
                    if (file.starts_with(path + "/")) {
                        const std::string rest = file.substr(path.size() + 1);
                        names.insert(rest.substr(0, rest.find('/')));
                    }
                if (names.empty()) return fail(ErrorCode::not_found, "no folder " + path);
                return std::vector<std::string>(names.begin(), names.end());
            }};
}

// The sysfs content of four kinds of machine, with the types and formats of real ones.
inline FakeTree plain_x86() {
    const std::string cpu = "bus/event_source/devices/cpu/";
    return {
        {cpu + "type", "4\n"},
        {cpu + "format/event", "config:0-7\n"},
        {cpu + "format/umask", "config:8-15\n"},
        {cpu + "format/edge", "config:18\n"},
        {cpu + "format/cmask", "config:24-31\n"},
        {cpu + "format/ldlat", "config1:0-15\n"},
        {cpu + "format/offcore_rsp", "config1:0-63\n"},
        {cpu + "events/cpu-cycles", "event=0x3c\n"},
        {cpu + "events/instructions", "event=0xc0\n"},
        {cpu + "events/mem-loads", "event=0xcd,umask=0x1,ldlat=3\n"},
        {cpu + "events/mem-loads.scale", "1\n"},
        {"bus/event_source/devices/software/type", "1\n"},
        {"bus/event_source/devices/uncore_imc_0/type", "12\n"},
        {"bus/event_source/devices/uncore_imc_0/cpumask", "0,18\n"},
        // AMD's northbridge has its event select in two pieces.
        {"bus/event_source/devices/amd_df/type", "11\n"},
        {"bus/event_source/devices/amd_df/format/event", "config:0-7,32-35,59-60\n"},
        {"bus/event_source/devices/broken/type", "77\n"},
        {"bus/event_source/devices/broken/format/event", "config:9-3\n"},
        {"bus/event_source/devices/broken/format/other", "config9:0-7\n"},
        {"bus/event_source/devices/broken/events/loop", "loop\n"},
        {"kernel/tracing/events/sched/sched_switch/id", "316\n"},
    };
}

inline FakeTree intel_hybrid() {
    const std::string base = "bus/event_source/devices/";
    return {
        {base + "cpu_core/type", "4\n"},
        {base + "cpu_core/cpus", "0-15\n"},
        {base + "cpu_core/format/event", "config:0-7\n"},
        {base + "cpu_core/events/cpu-cycles", "event=0x3c\n"},
        {base + "cpu_atom/type", "10\n"},
        {base + "cpu_atom/cpus", "16-23\n"},
        {base + "cpu_atom/format/event", "config:0-7\n"},
        {base + "cpu_atom/events/cpu-cycles", "event=0x3c\n"},
        {base + "software/type", "1\n"},
        {base + "uncore_cbox_0/type", "20\n"},
        {base + "uncore_cbox_0/cpumask", "0\n"},
    };
}

inline FakeTree arm_big_little() {
    const std::string base = "bus/event_source/devices/";
    return {
        {base + "armv8_cortex_a53/type", "8\n"},
        {base + "armv8_cortex_a53/cpus", "0-3\n"},
        {base + "armv8_cortex_a53/format/event", "config:0-15\n"},
        {base + "armv8_cortex_a53/events/cpu_cycles", "event=0x0011\n"},
        {base + "armv8_cortex_a72/type", "9\n"},
        {base + "armv8_cortex_a72/cpus", "4-5\n"},
        {base + "armv8_cortex_a72/format/event", "config:0-15\n"},
        {base + "armv8_cortex_a72/events/cpu_cycles", "event=0x0011\n"},
        {base + "software/type", "1\n"},
    };
}

inline FakeTree arm_one_kind() {
    const std::string base = "bus/event_source/devices/";
    return {
        {base + "armv8_cortex_a57/type", "7\n"},
        {base + "armv8_cortex_a57/cpus", "0-1\n"},
        {base + "armv8_cortex_a57/format/event", "config:0-15\n"},
        {base + "armv8_cortex_a57/events/cpu_cycles", "event=0x0011\n"},
        {base + "software/type", "1\n"},
    };
}

inline FakeTree no_pmu() { return {{"bus/event_source/devices/software/type", "1\n"}}; }

}  // namespace flamewire::agent
