// The fields of `perf script -F ...`. perf prints them in a fixed order without their names: a number can be a thread,
// a period or the end of a command's name. So the layout is the one that fits many lines.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "profile/formats/perf_script_lines.h"

namespace flamewire::profile {

// The fields in the first line of each sample, in this order.
struct PerfLayout {
    // What follows these fields: nothing, the frame of a sample without call chain, or fields that are not read.
    enum class Tail : std::uint8_t { none, frame, any };
    bool comm = false, ids = false, cpu = false, misc = false, time = false, period = false, event = false;
    Tail tail = Tail::none;
    bool line_after = false;  // registers or similar fields follow the frames, instead of an empty line

    // Samples have no first line: they begin with an empty line.
    [[nodiscard]] bool is_bare() const {
        return !(comm || ids || cpu || misc || time || period || event) && tail == Tail::none;
    }
};

// find_perf_layout() reads at most this many bytes of a text.
inline constexpr std::size_t perf_layout_bytes = 256 * 1024;

// `beginning` of a text; its last line can be incomplete. Returns nothing if parse_perf_sample(line, into) parses all
// lines, or if no layout fits them.
std::optional<PerfLayout> find_perf_layout(std::string_view beginning);

// Returns whether a line is source code of -F +srccode: "|5        text". In the default layout such a line follows the
// blank line after a sample.
bool is_perf_source_code(std::string_view line);
// Returns whether a line below a frame comes from -F +srcline or -F +srccode.
bool is_perf_source_line(std::string_view line);

// Parses the first line of a sample with these fields. False if the line does not have all of them.
bool parse_perf_sample(std::string_view line, const PerfLayout& layout, PerfSampleLine& into);

}  // namespace flamewire::profile
