#include "profile/formats/perf_script_layout.h"

#include <algorithm>
#include <tuple>
#include <utility>
#include <vector>

#include "profile/formats/perf_script_words.h"

namespace flamewire::profile {
namespace {

using namespace perf_script_words;
using Tail = PerfLayout::Tail;

// perf pads periods and addresses to these widths. "%5d/%-5d", the ids, can end with up to four spaces.
constexpr std::size_t period_width = 10, address_width = 16, ids_padding = 4;
// Bounds of the search. Names of kernel workers are the longest: 64 bytes.
constexpr std::size_t max_lines = 3'000, max_line_bytes = 4'096, max_comm_bytes = 80;

// A word and its width in columns, without the space between two fields.
struct Field {
    std::string_view word;
    std::size_t width = 0;
};
Field take_field(std::string_view& text, bool first) {
    const std::size_t before = text.size();
    const std::string_view word = take_word(text);
    const std::size_t width = before - text.size();
    return {word, first || width == 0 ? width : width - 1};
}

// "K", "U", "UE": the CPU mode and other properties of the record.
bool is_misc(std::string_view word) {
    return !word.empty() && word.size() <= 4 && word.find_first_not_of("KUHGgMEFSp") == std::string_view::npos;
}

// Addresses are padded with spaces; those of nm and of similar lists have leading zeros.
bool is_frame(std::string_view text) {
    while (!text.empty() && text[0] == '\t') text.remove_prefix(1);
    std::string_view rest = text;
    const std::string_view address = take_word(rest);
    const auto padded = static_cast<std::size_t>(address.data() + address.size() - text.data());
    if (padded < address_width || address.size() > address_width || (address.size() > 1 && address[0] == '0'))
        return false;
    PerfFrameLine frame;
    if (!std::ranges::all_of(address, is_hex) || !parse_perf_frame(text, frame)) return false;
    return frame.symbol.size() < 2 || frame.symbol[1] != ' ';  // "T main"
}

// Parses the fields after the command's name.
bool parse_fields(std::string_view text, const PerfLayout& layout, bool first, PerfSampleLine& into) {
    const auto next = [&] { return take_field(text, std::exchange(first, false)); };
    if (layout.ids) {
        const Field ids = next();
        if (ids.width >= period_width && ids.word.find('/') == std::string_view::npos && !layout.period) return false;
        if (!ids_of(ids.word, into)) return false;
    }
    if (layout.cpu && !cpu_of(next().word, into.cpu)) return false;
    if (layout.misc && !is_misc(next().word)) return false;
    if (layout.time && !time_of(next().word, into.time_ns)) return false;
    into.has_time = layout.time;
    if (layout.period) {
        const Field period = next();
        const std::size_t width = std::max(period_width, period.word.size());
        if (period.width < width || period.width > width + ids_padding) return false;
        if (!number_of(period.word, into.period)) return false;
        into.has_period = true;
    }
    if (layout.event) {
        const std::string_view word = next().word;
        if (word.size() < 2 || word.back() != ':' || is_digit(word[0])) return false;
        into.event = word.substr(0, word.size() - 1);
    }
    if (layout.tail == Tail::frame) {
        if (!first && !text.empty()) text.remove_prefix(1);
        // With -F addr the data address precedes the frame.
        std::string_view behind = text;
        const Field address = take_field(behind, true);
        if (!behind.empty()) behind.remove_prefix(1);
        if (address.width >= address_width && std::ranges::all_of(address.word, is_hex) && is_frame(behind))
            text = behind;
        if (!is_frame(text)) return false;
    }
    into.rest = text;
    return layout.tail != Tail::none || is_blank(text);
}

struct Lines {
    std::vector<std::string_view> first;  // first lines of the samples
    bool chains = false;                  // frames have lines of their own
    bool line_after = false;
};

// A sample with a call chain begins after an empty line, or after the line that follows the frames. Returns nothing if
// this is not a text of perf.
std::optional<Lines> lines_of(std::string_view beginning) {
    std::vector<std::string_view> all;
    beginning = beginning.substr(0, perf_layout_bytes);
    while (!beginning.empty() && all.size() < max_lines) {
        const std::size_t end = beginning.find('\n');
        if (end == std::string_view::npos && !all.empty()) break;
        const std::string_view line = beginning.substr(0, end);
        beginning.remove_prefix(end == std::string_view::npos ? beginning.size() : end + 1);
        if (line.starts_with('#') || is_perf_source_line(line)) continue;
        if (line.size() > max_line_bytes || line.find('\0') != std::string_view::npos) return std::nullopt;
        all.push_back(line);
    }
    Lines lines;
    std::size_t blank_after = 0, other_after = 0;
    for (std::size_t i = 0; i < all.size(); ++i) {
        if (!all[i].starts_with('\t')) continue;
        if (!is_frame(all[i])) return std::nullopt;
        lines.chains = true;
        if (i + 1 == all.size() || all[i + 1].starts_with('\t')) continue;
        ++(is_blank(all[i + 1]) ? blank_after : other_after);
    }
    lines.line_after = lines.chains && blank_after == 0 && other_after != 0;
    for (std::size_t i = 0; i < all.size(); ++i) {
        if (is_blank(all[i]) || all[i].starts_with('\t')) continue;
        if (lines.line_after && i > 0 && all[i - 1].starts_with('\t')) continue;
        lines.first.push_back(all[i]);
    }
    return lines;
}

bool fits(const Lines& lines, const PerfLayout& layout) {
    PerfSampleLine sample;
    return std::ranges::all_of(lines.first, [&](std::string_view line) {
        return line.starts_with("PERF_RECORD_") || parse_perf_sample(line, layout, sample);
    });
}

// Returns whether parse_perf_sample() parses all lines without a layout. Frames after the event then need a file name.
bool are_default(const Lines& lines) {
    if (lines.line_after || lines.first.empty()) return false;
    return std::ranges::all_of(lines.first, [&](std::string_view line) {
        PerfSampleLine sample;
        PerfFrameLine frame;
        return parse_perf_sample(line, sample) && sample.has_time &&
               (lines.chains || sample.rest.ends_with(')') || !parse_perf_frame(sample.rest, frame));
    });
}

// Returns whether perf prints such text. Without frames, time and event are needed to recognize it.
bool is_possible(const Lines& lines, const PerfLayout& layout) {
    if (lines.chains) return layout.tail != Tail::frame && (layout.tail == Tail::none || !layout.is_bare());
    return layout.tail == Tail::frame || (layout.time && layout.event);
}

std::size_t fields_of(const PerfLayout& layout) {
    return std::size_t{layout.ids} + layout.cpu + layout.misc + layout.time + layout.period + layout.event +
           (layout.tail == Tail::frame);
}

}  // namespace

bool is_perf_source_code(std::string_view line) {
    // perf prints the number as %-8d.
    constexpr std::size_t number_width = 8;
    if (!line.starts_with('|')) return false;
    line.remove_prefix(1);
    std::size_t digits = 0;
    while (digits < line.size() && is_digit(line[digits])) ++digits;
    if (digits == 0) return false;
    const std::size_t spaces = std::max(number_width, digits) + 1 - digits;
    return line.size() >= digits + spaces &&
           line.substr(digits, spaces).find_first_not_of(' ') == std::string_view::npos;
}

bool is_perf_source_line(std::string_view line) {
    if (is_perf_source_code(line)) return true;
    if (line.size() < 4 || !line.starts_with("  ") || is_space(line[2])) return false;
    trim_back(line);
    constexpr std::string_view inlined = " (inlined)";
    if (line.ends_with(inlined)) line.remove_suffix(inlined.size());
    // "app.c:5"; ":0" if the debug info has no file; "libc.so.6[891f5]" or "libc.so.6+0x891f5" if the line is unknown
    const bool bracket = line.ends_with(']');
    if (bracket) line.remove_suffix(1);
    std::size_t digits = 0;
    while (digits < line.size() && is_hex(line[line.size() - 1 - digits])) ++digits;
    line.remove_suffix(digits);
    return digits != 0 && (bracket ? line.ends_with('[') : line.ends_with(':') || line.ends_with("+0x"));
}

bool parse_perf_sample(std::string_view line, const PerfLayout& layout, PerfSampleLine& into) {
    into = {};
    if (line.size() > max_line_bytes) return false;
    trim_back(line);
    if (!layout.comm) return parse_fields(line, layout, true, into);
    if (fields_of(layout) == 0 && layout.tail == Tail::none) {
        trim_front(line);
        into.comm = line;
        return true;
    }
    // A name can be empty or contain spaces and numbers: the first split at which the other fields fit is taken.
    const std::size_t name_begins = std::min(line.find_first_not_of(" \t"), line.size());
    const std::size_t last = std::min(line.size(), name_begins + max_comm_bytes);
    for (std::size_t at = 0; at < last; ++at) {
        if (!is_space(line[at]) || (at > name_begins && is_space(line[at - 1]))) continue;
        PerfSampleLine sample;
        if (!parse_fields(line.substr(at), layout, false, sample)) continue;
        into = sample;
        into.comm = line.substr(0, at);
        trim_front(into.comm);
        trim_back(into.comm);
        return true;
    }
    return false;
}

std::optional<PerfLayout> find_perf_layout(std::string_view beginning) {
    const std::optional<Lines> found = lines_of(beginning);
    if (!found || (!found->chains && found->first.empty()) || are_default(*found)) return std::nullopt;
    const Lines& lines = *found;
    PerfLayout bare;
    bare.line_after = lines.line_after;
    if (lines.first.empty()) return bare;
    // Prefers layouts with more fields. A command's name fits anything, so it counts last.
    const auto rank = [](const PerfLayout& layout) {
        return std::tuple(layout.tail != Tail::any, fields_of(layout), !layout.comm);
    };
    std::optional<PerfLayout> best;
    for (unsigned bits = 0; bits < 1U << 7; ++bits)
        for (const Tail tail : {Tail::none, Tail::frame, Tail::any}) {
            const PerfLayout layout{.comm = (bits & 1U) != 0,
                                    .ids = (bits & 2U) != 0,
                                    .cpu = (bits & 4U) != 0,
                                    .misc = (bits & 8U) != 0,
                                    .time = (bits & 16U) != 0,
                                    .period = (bits & 32U) != 0,
                                    .event = (bits & 64U) != 0,
                                    .tail = tail,
                                    .line_after = lines.line_after};
            if (!is_possible(lines, layout) || (best && rank(layout) <= rank(*best))) continue;
            if (fits(lines, layout)) best = layout;
        }
    return best;
}

}  // namespace flamewire::profile
