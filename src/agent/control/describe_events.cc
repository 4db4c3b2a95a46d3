#include "agent/control/describe_events.h"

#include <fmt/format.h>
#include <linux/perf_event.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "agent/perf/tracepoint.h"
#include "agent/probes/place_breakpoints.h"
#include "agent/probes/probe_sites.h"

namespace flamewire::agent {
namespace {

void append_field(std::string& text, std::string_view name, std::string_view type) {
    text += fmt::format("  {}: {}\n", name, type);
}

Result<std::string> describe_tracepoint(const EventSpec& spec, const Sysfs& sysfs) {
    const std::string_view name = std::string_view(spec.name).substr(0, spec.name.find('/'));
    const std::size_t colon = name.find(':');
    const std::string_view system = name.substr(0, colon);
    const std::string_view event = name.substr(colon + 1, name.find(':', colon + 1) - colon - 1);
    std::string text = fmt::format("{}:{}: tracepoint\n", system, event);
    for (const perf::TracepointField& field : TRY(tracepoint_fields(system, event, sysfs)))
        append_field(text, field.name, field.type);
    return text;
}

// The type that ends a fetch argument of the kernel.
std::string_view type_of(std::string_view fetch) {
    const std::size_t colon = fetch.rfind(':');
    if (colon != std::string_view::npos) return fetch.substr(colon + 1);
    return sizeof(long) == 8 ? "u64" : "u32";
}

// One function or USDT probe. It may be in several files, and a USDT probe in several places of a file.
struct Described {
    std::string name;
    std::string places;
    std::vector<ProbeArgument> arguments;
};

Result<std::string> describe_probe(const EventSpec& spec, const ProbeTarget& target, const ProbeCosts* costs) {
    if (costs != nullptr && !costs->measured()) costs = nullptr;
    const std::optional<InstructionClasses> emulated = costs ? std::optional(costs->emulated) : std::nullopt;
    const ProbeSpec& probe = *spec.probe;
    if (probe.in_kernel()) {
        std::string text = fmt::format("{}: probe in the kernel\n", spec.name);
        for (const ProbeArgument& argument : probe.arguments)
            append_field(text, argument.name, type_of(argument.fetch));
        return text;
    }
    const bool pattern = (probe.function + probe.provider + probe.name).find('*') != std::string::npos;
    std::vector<Described> all;
    std::string paths;
    for (const ProbeFile& file : TRY(find_probe_files(probe.file, target))) {
        paths += (paths.empty() ? "" : ", ") + file.path;
        for (const ProbeSite& site :
             TRY(find_probe_sites(probe, file.file.get(), file.path, emulated, target.by_server))) {
            const std::string name = pattern ? name_of_match(probe, site.provider, site.name) : spec.name;
            auto known = std::ranges::find(all, name, &Described::name);
            if (known == all.end()) known = all.insert(known, {name, {}, site.arguments});
            known->places += fmt::format("  at offset {:#x} of {}", site.offset, file.path);
            if (costs != nullptr) {
                const std::uint32_t ns = costs->hit_ns(site.emulated);
                known->places += fmt::format(", about {}.{} us per hit", ns / 1000, ns % 1000 / 100);
            }
            known->places += '\n';
        }
    }
    if (all.empty()) return fail(ErrorCode::not_found, fmt::format("{}: nothing in {} matches", spec.name, paths));
    std::string text;
    for (const Described& one : all) {
        text += fmt::format("{}: probe\n{}", one.name, one.places);
        for (const ProbeArgument& argument : one.arguments) append_field(text, argument.name, type_of(argument.fetch));
    }
    return text;
}

Result<std::string> describe_breakpoint(const EventSpec& spec, const ProbeTarget& target) {
    if (spec.breakpoint && target.pids.empty())
        return fmt::format("{}: breakpoint; give its process with --pid to see its address\n", spec.name);
    std::vector<EventSpec> placed{spec};
    (void)TRY(place_breakpoints(placed, target.pids, {}));
    std::string text = fmt::format("{}: breakpoint\n", spec.name);
    for (const EventPart& part : placed.front().parts) {
        text += fmt::format("  {} bytes at {:#x}", part.config2, part.config1);
        if (const std::uint32_t pid = process_of(part); pid != 0) text += fmt::format(" in process {}", pid);
        text += '\n';
    }
    return text;
}

}  // namespace

Result<std::string> describe_events(std::string_view list, const ProbeTarget& target, const Sysfs& sysfs,
                                    const ProbeCosts* costs) {
    std::string text;
    for (const EventSpec& spec : TRY(parse_events(list, sysfs))) {
        if (spec.probe)
            text += TRY(describe_probe(spec, target, costs));
        else if (is_breakpoint(spec))
            text += TRY(describe_breakpoint(spec, target));
        else if (spec.off_cpu == 0 && spec.parts.front().type == PERF_TYPE_TRACEPOINT)
            text += TRY(describe_tracepoint(spec, sysfs));
        else
            text += fmt::format("{}: counts {}, no fields\n", spec.name, spec.unit);
    }
    return text;
}

}  // namespace flamewire::agent
