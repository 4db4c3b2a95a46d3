#include "agent/perf/event_items.h"

#include <fmt/format.h>

#include <algorithm>

#include "agent/perf/breakpoint_spec.h"
#include "agent/perf/probe_spec.h"

namespace flamewire::agent {
namespace {

constexpr std::string_view trace_mark = "trace:", trigger_mark = "trigger:";

}  // namespace

std::string_view trim(std::string_view text) {
    const std::size_t begin = text.find_first_not_of(" \t");
    if (begin == std::string_view::npos) return {};
    return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

Mark take_mark(std::string_view& item) {
    if (item.starts_with(trace_mark)) return item.remove_prefix(trace_mark.size()), Mark::trace;
    if (item.starts_with(trigger_mark)) return item.remove_prefix(trigger_mark.size()), Mark::trigger;
    return Mark::none;
}

std::vector<std::string_view> split_list(std::string_view list) {
    std::vector<std::string_view> items;
    bool in_terms = false, quoted = false, probe = false;
    std::size_t begin = 0;
    for (std::size_t i = 0; i < list.size(); ++i) {
        if (i == begin && list[i] == ' ') {
            ++begin;
            continue;
        }
        if (i == begin) {
            std::string_view event = list.substr(begin);
            (void)take_mark(event);
            probe = is_probe(event) || is_breakpoint(event);
            i += list.substr(begin).size() - event.size() + unquoted_path_end(event);
            if (i == list.size()) break;
        }
        quoted = probe && (list[i] == '"') != quoted;
        in_terms = !probe && (list[i] == '/') != in_terms;
        if (list[i] == ',' && !in_terms && !quoted) {
            items.push_back(trim(list.substr(begin, i - begin)));
            begin = i + 1;
        }
    }
    items.push_back(trim(list.substr(begin)));
    return items;
}

std::string traced_events(std::string_view list) {
    std::string marked;
    for (std::string_view item : split_list(list)) {
        const std::string_view text = item;
        const bool is_marked = take_mark(item) != Mark::none;
        marked += fmt::format("{}{}{}", marked.empty() ? "" : ",", is_marked ? "" : trace_mark, text);
    }
    return marked;
}

bool traces_events(std::string_view list) {
    return std::ranges::any_of(split_list(list), [](std::string_view item) { return take_mark(item) != Mark::none; });
}

}  // namespace flamewire::agent
