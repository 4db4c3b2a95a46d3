#include "profile/formats/collapsed.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <vector>

#include "profile/query/accumulate.h"
#include "profile/query/grouping.h"

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

// The beginnings of lines: the event if there are several, the group if the export is grouped, and the thread's name
// unless the group has it.
class Beginnings {
public:
    Beginnings(const Store& store, GroupBy by, std::string_view event)
        : tables_(store.tables()),
          named_(by == GroupBy::process || by == GroupBy::thread),
          groups_(by == GroupBy::none ? nullptr : std::make_unique<Grouping>(store, by)),
          event_(event) {}

    // Returns an index into texts(). Threads with the same name share one.
    std::uint32_t of(const Lane& lane) {
        const std::uint32_t group = groups_ ? groups_->of(lane) : 0;
        const std::string_view comm = named_ ? std::string_view() : comm_of(tables_.threads[lane.thread]);
        const auto [entry, added] = known_.try_emplace({group, comm}, narrow32(texts_.size()));
        if (!added) return entry->second;
        std::string text;
        if (!event_.empty()) append_name(text, event_);
        if (groups_) append_name(text, groups_->names()[group]);
        if (!comm.empty()) append_name(text, comm);
        texts_.push_back(std::move(text));
        return entry->second;
    }
    [[nodiscard]] const std::vector<std::string>& texts() const { return texts_; }

private:
    static std::string_view comm_of(const Thread& thread) {
        // Imports of formats without threads have a placeholder thread.
        const bool none = thread.comm.empty() && thread.tid == 0;
        return none || !thread.comm.empty() ? thread.comm : "[unknown]";
    }

    const Store::Tables& tables_;
    bool named_;
    std::unique_ptr<Grouping> groups_;
    std::string_view event_;
    std::map<std::pair<std::uint32_t, std::string_view>, std::uint32_t> known_;
    std::vector<std::string> texts_;
};

// False: the stack is longer than `max_bytes`.
bool append_stack(std::string& out, const Store::Tables& tables, NodeId node, std::size_t max_bytes,
                  std::vector<NodeId>& path) {
    path.clear();
    std::size_t bytes = 0;
    for (; node != 0; node = tables.nodes.parent(node)) {
        bytes += tables.strings[tables.functions[tables.nodes.label(node)].name].size() + 1;
        if (bytes > max_bytes) return false;
        path.push_back(node);
    }
    for (auto step = path.rbegin(); step != path.rend(); ++step)
        append_name(out, tables.strings[tables.functions[tables.nodes.label(*step)].name]);
    return true;
}

void add_event(const Store& store, const Filter& filter, std::string_view prefix, const CollapsedOptions& options,
               std::size_t& bytes, std::vector<Line>& lines) {
    const Store::Tables& tables = store.tables();
    const Selection selection = select(tables, filter);
    Beginnings beginnings(store, options.group, prefix);
    PairSums sums;
    tables.rows.for_each(selection.rows, [&](const RowChunk&, const Row& row) {
        sums.add(beginnings.of(row.lane), tables.node_of_stack[row.stack], {row.count, row.weight});
    });
    const std::vector<std::string>& texts = beginnings.texts();
    std::vector<std::uint64_t> beyond(texts.size());
    std::vector<NodeId> path;
    for (const PairSums::Entry& entry : sums.entries()) {
        const std::uint64_t number = options.weights ? entry.sum.weight : entry.sum.samples;
        if (number == 0) continue;
        std::string text = texts[entry.first];
        if (bytes >= options.max_bytes || !append_stack(text, tables, entry.second, options.max_stack_bytes, path)) {
            beyond[entry.first] += number;
            continue;
        }
        bytes += text.size() + sizeof(Line);
        lines.push_back({std::move(text), number});
    }
    for (std::uint32_t name = 0; name < texts.size(); ++name) {
        if (beyond[name] == 0) continue;
        std::string text = texts[name];
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
        add_event(store, one, prefixed ? std::string_view(tables.events[event].name) : "", options, bytes, lines);
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
