// One line of /tmp/perf-PID.map, where a process names the code that it generates at run time: "START SIZE NAME",
// numbers in hex. Source: the kernel's tools/perf/Documentation/jit-interface.txt.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace flamewire::elf {

struct PerfMapLine {
    std::uint64_t start = 0, size = 0;
    std::string_view name;  // a part of the line
};
// `line` has no line break. nullopt if numbers, size or name are missing, or the end exceeds the last address.
std::optional<PerfMapLine> parse_perf_map_line(std::string_view line);

}  // namespace flamewire::elf
