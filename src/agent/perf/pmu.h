// PMUs as sysfs describes them: type, CPUs, format fields and event aliases (Documentation/ABI/testing/
// sysfs-bus-event_source-devices-{format,events}). Pure over a view of sysfs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/perf/event_spec.h"
#include "base/result.h"

namespace flamewire::agent {

inline constexpr std::string_view pmu_folder = "bus/event_source/devices";

struct Pmu {
    std::string name;
    std::uint32_t type = 0;
    std::vector<std::uint32_t> cpus;  // CPUs that it counts on; empty: all
    bool core = false;  // a PMU of CPU cores (`cpu`, or one with a `cpus` file), not an uncore or software one
};

// Parses "0-3,8" into ascending numbers; nothing if it is malformed or contains a CPU above 65,535.
std::optional<std::vector<std::uint32_t>> parse_cpu_list(std::string_view text);

// The inverse of parse_cpu_list.
std::string cpu_list_text(const std::vector<std::uint32_t>& cpus);

// CPUs that are online now; not empty.
std::vector<std::uint32_t> online_cpus(const Sysfs& sysfs);

// not_found if this machine has no such PMU; the message lists the existing ones.
Result<Pmu> read_pmu(std::string_view name, const Sysfs& sysfs);
// Names in the PMU folder, sorted; empty if the folder does not exist.
std::vector<std::string> list_pmus(const Sysfs& sysfs);

// The core PMUs of a machine with several core types (cpu_core and cpu_atom; armv8_cortex_a53 and _a72); empty if the
// generic event types reach all cores.
std::vector<Pmu> hybrid_core_pmus(const Sysfs& sysfs);

struct PmuConfig {
    std::uint64_t config = 0, config1 = 0, config2 = 0;
};
// Distributes the bits of `value` to the positions in a format file ("config:0-7,21"). invalid if the text is malformed
// or the value does not fit.
Result<PmuConfig> place_bits(std::string_view format, std::uint64_t value);

// Applies the terms of `pmu/terms/` (and of aliases): config=, config1=, config2=, format fields, event aliases.
Result<PmuConfig> parse_pmu_terms(std::string_view pmu, std::string_view terms, const Sysfs& sysfs);

}  // namespace flamewire::agent
