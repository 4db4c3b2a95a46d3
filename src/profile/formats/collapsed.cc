#include "profile/formats/collapsed.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <vector>

#include "profile/accumulate.h"

namespace flamewire::profile {

namespace {

struct Line {
    std::string text;
    std::uint64_t number = 0;
};

void append_name(std::string& out, std::string_view name) {
    if (!out.empty()) out += ';';
    for (const char c : name) out += c == ';' ? ':' : c == '\n' || c == '\r' ? ' ' : c;
}

// Threads of one name are one group.
std::vector<std::uint32_t> group_by_comm(std::span<const Thread> threads, std::vector<std::string_view>& names) {
    std::map<std::string_view, std::uint32_t> known;
    std::vector<std::uint32_t> group;
    for (const Thread& thread : threads) {
        // Imports of formats without threads have one that is none.
        const bool none = thread.comm.empty() && thread.tid == 0;
        const std::string_view name = none || !thread.comm.empty() ? std::string_view(thread.comm) : "[unknown]";
        const auto [entry, added] = known.try_emplace(name, narrow32(names.size()));
        if (added) names.push_back(name);
        group.push_back(entry->second);
    }
    return group;
}

void append_stack(std::string& out, const Store::Tables& tables, NodeId node, std::vector<NodeId>& path) {
    path.clear();
    for (; node != 0; node = tables.nodes.parent(node)) path.push_back(node);
    for (auto step = path.rbegin(); step != path.rend(); ++step)
        append_name(out, tables.strings[tables.functions[tables.nodes.label(*step)].name]);
}

void add_event(const Store::Tables& tables, const Filter& filter, std::string_view prefix,
               const CollapsedOptions& options, std::size_t& bytes, std::vector<Line>& lines) {
    const Selection selection = select(tables, filter);
    std::vector<std::string_view> names;
    const std::vector<std::uint32_t> group = group_by_comm(tables.threads, names);
    PairSums sums;
    tables.rows.for_each(selection.rows, [&](const RowChunk&, const Row& row) {
        sums.add(group[row.lane.thread], tables.node_of_stack[row.stack], {row.count, row.weight});
    });
    std::vector<std::uint64_t> beyond(names.size());
    std::vector<NodeId> path;
    const auto start_line = [&](std::uint32_t name) {
        std::string text;
        if (!prefix.empty()) append_name(text, prefix);
        if (!names[name].empty()) append_name(text, names[name]);
        return text;
    };
    for (const PairSums::Entry& entry : sums.entries()) {
        const std::uint64_t number = options.weights ? entry.sum.weight : entry.sum.samples;
        if (number == 0) continue;
        if (bytes >= options.max_bytes) {
            beyond[entry.first] += number;
            continue;
        }
        std::string text = start_line(entry.first);
        append_stack(text, tables, entry.second, path);
        bytes += text.size() + sizeof(Line);
        lines.push_back({std::move(text), number});
    }
    for (std::uint32_t name = 0; name < names.size(); ++name) {
        if (beyond[name] == 0) continue;
        std::string text = start_line(name);
        append_name(text, "[export limit]");
        lines.push_back({std::move(text), beyond[name]});
    }
}

}  // namespace

std::string collapsed(const Store& store, const Filter& filter, const CollapsedOptions& options) {
    const Store::Tables& tables = store.tables();
    std::vector<EventId> events;
    for (EventId event = 1; event < tables.events.size(); ++event)
        if ((!filter.event || *filter.event == event) && tables.event_totals[event].samples != 0)
            events.push_back(event);
    const bool prefixed = !filter.event && events.size() > 1;
    std::vector<Line> lines;
    std::size_t bytes = 0;
    for (const EventId event : events) {
        Filter one = filter;
        one.event = event;
        add_event(tables, one, prefixed ? std::string_view(tables.events[event].name) : "", options, bytes, lines);
    }
    std::ranges::sort(lines, {}, &Line::text);
    std::string out;
    for (std::size_t i = 0; i < lines.size();) {
        std::uint64_t number = 0;
        const std::size_t first = i;
        for (; i < lines.size() && lines[i].text == lines[first].text; ++i) number += lines[i].number;
        fmt::format_to(std::back_inserter(out), "{} {}\n", lines[first].text, number);
    }
    return out;
}

}  // namespace flamewire::profile
