#include "counters/sched_table.h"

#include <algorithm>
#include <string_view>

#include "base/decimal.h"

namespace flamewire::counters {
namespace {

constexpr std::size_t name_width = 24;
// Where the groups of columns end.
constexpr std::size_t group_ends[] = {64, 90, 137, 184};
constexpr std::size_t whole_width = 184;

std::size_t fitting(std::size_t width) {
    std::size_t columns = group_ends[0];
    for (const std::size_t end : group_ends)
        if (width == 0 || end <= width) columns = end;
    return columns;
}

void put(std::string& table, std::string text, std::size_t width) {
    if (text.size() < width) table.append(width - text.size(), ' ');
    table += text;
}

void put_ms(std::string& table, std::uint64_t ns, std::size_t width) {
    // 0.012, 12.345, 12345.6
    const bool large = ns >= 100'000'000;
    const std::uint64_t unit = large ? 100'000 : 1'000;
    put(table, decimal(static_cast<std::int64_t>((ns + unit / 2) / unit), large ? 1 : 3), width);
}

void put_lengths(std::string& table, const wire::Durations& lengths) {
    const std::uint64_t count = lengths.count();
    table += " |";
    put_ms(table, count == 0 ? 0 : lengths.sum_ns / count, 9);
    for (const std::uint32_t per_mille : {500U, 950U, 990U}) put_ms(table, lengths.quantile_ns(per_mille), 9);
    put_ms(table, lengths.max_ns, 9);
}

void put_line(std::string& table, std::string name, const wire::ThreadTimes& times, std::size_t columns) {
    const std::size_t begin = table.size();
    for (char& letter : name)
        if (static_cast<unsigned char>(letter) < ' ' || letter == '\x7f') letter = '?';
    if (name.size() > name_width) {
        // Do not cut within a UTF-8 character.
        std::size_t cut = name_width;
        while (cut > 0 && (static_cast<unsigned char>(name[cut]) & 0xC0U) == 0x80U) --cut;
        name.resize(cut);
    }
    name.resize(std::max(name.size(), name_width), ' ');
    table += name;
    for (const std::uint64_t ns : times.state_ns) put_ms(table, ns, 10);
    table += " |";
    for (const std::uint64_t count : {times.preempted, times.slept, times.io_waits})
        put(table, std::to_string(count), 8);
    put_lengths(table, times.queued);
    put_lengths(table, times.slices);
    table.resize(std::min(table.size(), begin + columns));
    table += '\n';
}

}  // namespace

std::string sched_table(const std::vector<const SchedLine*>& lines, std::size_t most, std::size_t width) {
    constexpr std::string_view above =
        "                            Time spent, ms                       | Left its CPU            |"
        " Waited for a CPU, ms                        | Kept it, ms";
    constexpr std::string_view names =
        "Thread                         Run  Runnable   Blocked  I/O wait |Preempted  Slept     I/O |"
        "      avg      p50      p95      p99      max |      avg      p50      p95      p99      max";
    const std::size_t columns = fitting(width);
    std::string table;
    for (const std::string_view line : {above, names}) {
        table += line.substr(0, columns);
        table += '\n';
    }
    wire::ThreadTimes all;
    for (std::size_t i = 0; i < lines.size(); ++i) {
        all.add(lines[i]->times);
        if (most == 0 || i < most)
            put_line(table, lines[i]->name + ":" + std::to_string(lines[i]->tid), lines[i]->times, columns);
    }
    if (most != 0 && lines.size() > most) table += "… and " + std::to_string(lines.size() - most) + " more\n";
    put_line(table, "all " + std::to_string(lines.size()) + " threads", all, columns);
    if (columns < whole_width) table += "(more columns in a terminal of 184, in a pipe or a file)\n";
    return table;
}

}  // namespace flamewire::counters
