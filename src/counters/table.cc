// The output of `perf stat`: value in 18 columns, unit in 4, name in 32, then "# figure label" and, for multiplexed
// counters, the share of time in which they were counted.
#include <algorithm>
#include <string>
#include <string_view>

#include "base/decimal.h"
#include "counters/derive.h"

namespace flamewire::counters {

namespace {

constexpr std::size_t value_width = 18, unit_width = 4, name_width = 32, figure_width = 35;
constexpr double ns_per_ms = 1e6, ns_per_s = 1e9;

// 1234567.8 -> 1,234,567.8
std::string with_separators(std::string text) {
    const std::size_t end = std::min(text.find('.'), text.size());
    for (std::size_t at = end; at > 3 + (text.starts_with('-') ? 1U : 0U);) {
        at -= 3;
        text.insert(at, 1, ',');
    }
    return text;
}

std::string right(const std::string& text, std::size_t width) {
    return text.size() >= width ? text : std::string(width - text.size(), ' ') + text;
}

std::string left(std::string text, std::size_t width) {
    if (text.size() < width) text.resize(width, ' ');
    return text;
}

// 0.998 "CPUs utilized", 2.50% "of all branches", 72.390 "K/sec".
std::string figure(const Derived& derived) {
    if (derived.label.starts_with('%')) return " # " + right(fixed(derived.value, 2), 7) + derived.label;
    const bool ratio = derived.label.ends_with(" insn") || derived.label.ends_with(" cycle");
    return " # " + (ratio ? right(fixed(derived.value, 2), 7) + " " : right(fixed(derived.value, 3), 8)) + " " +
           derived.label;
}

Derived rate(double per_second) {
    std::string_view prefix;
    for (const std::string_view larger : {"K", "M", "G"}) {
        if (per_second <= 1000) break;
        per_second /= 1000;
        prefix = larger;
    }
    return {per_second, std::string(prefix) + "/sec"};
}

std::string_view word(const Line& line) {
    switch (line.sum.status) {
        case wire::CounterStatus::unsupported: return "<not supported>";
        case wire::CounterStatus::never_counts: return "<never counts>";
        case wire::CounterStatus::forbidden: return "<not permitted>";
        case wire::CounterStatus::not_counted: return "<not counted>";
        case wire::CounterStatus::counted: return line.value && line.sum.running_ns != 0 ? "" : "<not counted>";
    }
    return "<not counted>";
}

void finish_line(std::string& table) {
    while (table.ends_with(' ')) table.pop_back();
    table += '\n';
}

void put_line(std::string& table, const Line& line, const std::string& name) {
    const std::string_view absent = word(line);
    const bool time = line.sum.unit == "ns";
    std::string value(absent);
    if (absent.empty()) value = with_separators(time ? fixed(*line.value / ns_per_ms, 2) : fixed(*line.value, 0));
    table += right(value, value_width) + " " + left(time ? "msec" : "", unit_width) + " " + left(name, name_width);
    if (!absent.empty()) return finish_line(table);

    std::vector<Derived> figures;
    if (line.derived) figures.push_back({*line.derived, line.derived_label});
    figures.insert(figures.end(), line.more.begin(), line.more.end());
    // perf stat prints no rate next to a derived figure, and none for instructions and cycles even without one.
    const bool has_own = line.sum.name.starts_with("instructions") || line.sum.name.starts_with("cycles");
    if (figures.empty() && line.per_second && !has_own && !time) figures.push_back(rate(*line.per_second));
    for (std::size_t i = 0; i < figures.size(); ++i) {
        if (i > 0) {
            finish_line(table);
            table.append(value_width + 1 + unit_width + 1 + name_width, ' ');
        }
        table += left(figure(figures[i]), figure_width);
    }
    if (figures.empty()) table.append(figure_width, ' ');
    if (line.sum.running_ns < line.sum.enabled_ns && line.percent_counted)
        table += "  (" + fixed(*line.percent_counted, 2) + "%)";
    finish_line(table);
}

void put_seconds(std::string& table, std::uint64_t nanoseconds, std::string_view what) {
    table += right(fixed(static_cast<double>(nanoseconds) / ns_per_s, 9), value_width) + " ";
    table += what;
    table += '\n';
}

}  // namespace

std::string perf_stat_table(std::span<const Line> lines, const std::string& title, std::uint64_t elapsed_ns,
                            const std::optional<CommandTimes>& command) {
    std::string table = "\n Performance counter stats for " + title + ":\n\n";
    for (const Line& line : lines) {
        put_line(table, line, line.sum.name);
        for (const Line& part : line.parts) put_line(table, part, "  " + part.sum.part + "/" + part.sum.name + "/");
    }
    table += '\n';
    put_seconds(table, elapsed_ns, "seconds time elapsed");
    if (command) {
        table += '\n';
        put_seconds(table, command->user_ns, "seconds user");
        put_seconds(table, command->system_ns, "seconds sys");
    }
    table += '\n';
    return table;
}

}  // namespace flamewire::counters
