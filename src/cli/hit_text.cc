#include "cli/hit_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/json_writer.h"
#include "base/utf8.h"
#include "cli/profile_text.h"
#include "profile/query/hits.h"

namespace flamewire::cli {
namespace {

double seconds(const profile::Hit& hit, std::uint64_t origin_ns) {
    return (static_cast<double>(hit.time_ns) - static_cast<double>(origin_ns)) / 1e9;
}

// "1234", "0.25", "1.23e+12": whole numbers up to 15 digits are exact.
std::string figure(double value) {
    const bool whole = std::floor(value) == value && std::abs(value) < 1e15;
    return whole ? fmt::format("{:.0f}", value) : fmt::format("{:.4g}", value);
}

std::string bar(std::uint64_t hits, std::uint64_t most, const OutputStyle& style) {
    constexpr std::size_t width = 40;
    const auto length = static_cast<std::size_t>(std::ceil(static_cast<double>(width) * static_cast<double>(hits) /
                                                           static_cast<double>(std::max<std::uint64_t>(most, 1))));
    std::string text;
    for (std::size_t i = 0; i < length; ++i) text += style.unicode ? "█" : "#";
    return text;
}

std::string distribution_text(const std::vector<views::HitBucket>& buckets, const std::string& value,
                              const OutputStyle& style) {
    std::uint64_t most = 0;
    for (const views::HitBucket& one : buckets) most = std::max(most, one.hits);
    std::string text = fmt::format("\n{:>14} {:>14} {:>10}\n", value + " from", "below", "hits");
    for (const views::HitBucket& one : buckets) {
        // Values are whole. Buckets of negative ones include their upper bound instead of the lower one.
        const double shift = one.low < 0 ? 1 : 0;
        text += fmt::format("{:>14} {:>14} {:>10} {}\n", figure(one.low + shift),
                            one.low == one.high ? "" : figure(one.high + shift), one.hits, bar(one.hits, most, style));
    }
    return text;
}

}  // namespace

std::string hit_text(const profile::Store& store, const views::HitValues& values, const views::HitRef& ref,
                     std::uint64_t origin_ns, std::size_t frames) {
    const profile::Hit& hit = ref.hit();
    const profile::Thread& thread = store.threads()[hit.thread];
    std::string text = fmt::format("{} {}/{} [{:03}] {:.6f}: {}: {}", shown_function(thread.comm, {}, 0), thread.pid,
                                   thread.tid, hit.cpu, seconds(hit, origin_ns),
                                   printable(store.events()[ref.chunk->event].name), values.line(ref));
    if (hit.weight > 1) text += fmt::format(" (one of {})", hit.weight);
    text += '\n';
    for (const profile::Function& function : profile::functions_of(store, hit.stack, frames))
        text += fmt::format("    {}\n", shown_function(store.string(function.name), store.string(function.module), 0));
    return text;
}

std::string hit_json(const profile::Store& store, const views::HitValues& values, const views::HitRef& ref,
                     std::uint64_t origin_ns, std::size_t frames) {
    const profile::Hit& hit = ref.hit();
    const profile::Thread& thread = store.threads()[hit.thread];
    JsonWriter json;
    json.object();
    json.member("time", seconds(hit, origin_ns));
    json.member("event", store.events()[ref.chunk->event].name);
    json.member("comm", thread.comm);
    json.member("pid", thread.pid);
    json.member("tid", thread.tid);
    json.member("cpu", hit.cpu);
    json.member("weight", hit.weight);
    json.object("values");
    for (std::size_t field = 0; field < values.fields(ref).size(); ++field)
        json.member(values.fields(ref)[field], values.text(ref, field));
    json.end_object();
    json.list("stack", profile::functions_of(store, hit.stack, frames),
              [&](const profile::Function& function) { json.text(store.string(function.name)); });
    json.end_object();
    return json.take() + "\n";
}

std::string hit_table_text(const views::HitTable& table, const std::string& key, const std::string& value,
                           std::size_t most_rows, bool distribution, const OutputStyle& style) {
    const bool thinned =
        std::ranges::any_of(table.groups, [](const views::HitGroup& group) { return group.weight != group.hits; });
    std::string head = fmt::format("{:>10}", "hits");
    if (thinned) head += fmt::format(" {:>10}", "events");
    if (!value.empty())
        for (const char* name : {"sum", "avg", "min", "p50", "p95", "p99", "max"}) head += fmt::format(" {:>10}", name);
    std::string text = head + "  " + key + "\n";
    const std::size_t rows = most_rows == 0 ? table.groups.size() : std::min(most_rows, table.groups.size());
    std::uint64_t left_out = table.other_groups, left_out_hits = table.other_hits;
    for (std::size_t i = 0; i < table.groups.size(); ++i) {
        const views::HitGroup& group = table.groups[i];
        if (i >= rows) {
            ++left_out;
            left_out_hits += group.hits;
            continue;
        }
        std::string line = fmt::format("{:>10}", group.hits);
        if (thinned) line += fmt::format(" {:>10}", group.weight);
        if (!value.empty())
            for (const double number :
                 {group.sum, group.average(), group.min, group.p50, group.p95, group.p99, group.max})
                line += fmt::format(" {:>10}", figure(number));
        const auto used = static_cast<unsigned>(line.size() + 2);
        const unsigned width = style.columns > used + 10 ? style.columns - used : 0;
        text += line + "  " + shown_function(group.key, {}, width) + "\n";
    }
    if (left_out != 0) text += fmt::format("# {} more keys with {} hits\n", left_out, left_out_hits);
    if (table.without_key != 0) text += fmt::format("# {} hits of events without these fields\n", table.without_key);
    if (distribution && !value.empty()) text += distribution_text(table.distribution, value, style);
    return text;
}

}  // namespace flamewire::cli
