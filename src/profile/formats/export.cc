#include "profile/formats/export.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "profile/formats/collapsed.h"
#include "profile/formats/csv.h"
#include "profile/formats/firefox.h"
#include "profile/formats/json.h"
#include "profile/formats/perf_data/perf_data_export.h"
#include "profile/formats/pprof.h"
#include "profile/formats/speedscope.h"
#include "profile/formats/svg.h"

namespace flamewire::profile {
namespace {

using Text = Result<std::string>;

constexpr std::array formats{
    ExportFormat{"collapsed", "folded stacks, one a line", "text/plain; charset=utf-8", ".collapsed", true, true,
                 [](const Store& store, const Filter& filter, const ExportAbout& about) -> Text {
                     return collapsed(store, filter, {.weights = about.weights, .group = about.group});
                 }},
    ExportFormat{"json", "functions and call trees of all events", "application/json", ".json", false, false,
                 [](const Store& store, const Filter& filter, const ExportAbout& about) -> Text {
                     return json(store, filter, {.name = about.name, .tags = about.tags});
                 }},
    ExportFormat{
        "csv", "the table of functions", "text/csv; charset=utf-8", ".csv", true, false,
        [](const Store& store, const Filter& filter, const ExportAbout&) -> Text { return csv(store, filter); }},
    ExportFormat{"svg", "a flame graph as one picture", "image/svg+xml", ".svg", true, true,
                 [](const Store& store, const Filter& filter, const ExportAbout& about) -> Text {
                     SvgOptions options;
                     options.title = about.name;
                     options.group = about.group;
                     if (filter.event && *filter.event < store.events().size())
                         options.title += fmt::format(" ({})", store.events()[*filter.event].name);
                     return svg(store, filter, options);
                 }},
    ExportFormat{"pprof", "a profile for pprof", "application/octet-stream", ".pb.gz", false, false,
                 [](const Store& store, const Filter& filter, const ExportAbout& about) -> Text {
                     return pprof(store, filter, {.started_ns = about.started_ns, .tags = about.tags});
                 }},
    ExportFormat{"speedscope", "profiles for speedscope", "application/json", ".speedscope.json", false, false,
                 [](const Store& store, const Filter& filter, const ExportAbout& about) -> Text {
                     return speedscope(store, filter, about.name);
                 }},
    ExportFormat{"firefox", "a profile for the Firefox Profiler", "application/json", ".firefox.json", false, false,
                 [](const Store& store, const Filter& filter, const ExportAbout& about) -> Text {
                     return firefox(store, filter,
                                    {.name = about.name, .started_ns = about.started_ns, .tags = about.tags});
                 }},
    ExportFormat{"perfdata", "a perf.data file for perf", "application/octet-stream", ".perf.data", false, false,
                 [](const Store& store, const Filter& filter, const ExportAbout& about) -> Text {
                     return perf_data::perf_data_file(store, filter, {.started_ns = about.started_ns});
                 }},
};

}  // namespace

std::span<const ExportFormat> export_formats() { return formats; }

const ExportFormat* find_export_format(std::string_view name) {
    const auto found = std::ranges::find(formats, name, &ExportFormat::name);
    return found == formats.end() ? nullptr : &*found;
}

std::string export_format_names() {
    std::vector<std::string_view> names;
    names.reserve(std::size(formats));
    for (const ExportFormat& format : formats) names.push_back(format.name);
    return fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace flamewire::profile
