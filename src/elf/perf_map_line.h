// One line of /tmp/perf-PID.map, in which a process names the code that it makes while it runs: "START SIZE NAME", numbers
// in hex. Source of the format: tools/perf/Documentation/jit-interface.txt of the kernel.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace flamewire::elf {

struct PerfMapLine {
    std::uint64_t start = 0, size = 0;
    std::string_view name;  // a part of the line
};
// Without its line break. Nothing when it says nothing: no numbers, no size, no name, or an end beyond the last address.
std::optional<PerfMapLine> parse_perf_map_line(std::string_view line);

}  // namespace flamewire::elf
