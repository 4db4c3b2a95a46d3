// /tmp/perf-PID.map, which a process writes for its JIT code: one line "START SIZE NAME" each, with hexadecimal numbers
// (linux, tools/perf/Documentation/jit-interface.txt). If several lines cover an address, the last one wins, because
// new code overwrites old code.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "symbol/types/interval_map.h"

namespace flamewire::symbol {

class PerfMap {
public:
    // Bounds memory: a line needs at most 64 bytes in addition to the text. Later lines are ignored.
    static constexpr std::size_t max_lines = std::size_t{1} << 20;

    PerfMap() = default;
    // Skips malformed lines.
    explicit PerfMap(std::string text);

    // The name that covers the address; empty if there is none. Valid as long as the map.
    [[nodiscard]] std::string_view find(std::uint64_t address) const;
    [[nodiscard]] std::size_t lines() const { return names_.size(); }
    [[nodiscard]] bool cut() const { return cut_; }

private:
    struct Name {
        std::size_t offset = 0, size = 0;
    };
    std::string text_;
    std::vector<Name> names_;
    IntervalMap map_;  // owners: indexes of names_
    bool cut_ = false;
};

}  // namespace flamewire::symbol
