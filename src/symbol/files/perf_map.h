// /tmp/perf-PID.map: what a process writes of the code that it makes while it runs, a line "START SIZE NAME" each, numbers
// hexadecimal (linux, tools/perf/Documentation/jit-interface.txt). Where several lines cover an address the last one holds:
// code is written over old code.
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
    // Bounds memory: at most 64 bytes a line are needed beside the text. What stands behind is left out.
    static constexpr std::size_t max_lines = std::size_t{1} << 20;

    PerfMap() = default;
    // Lines that are none are passed over.
    explicit PerfMap(std::string text);

    // The name of what covers the address; empty: nothing does. It lives as long as the map.
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
