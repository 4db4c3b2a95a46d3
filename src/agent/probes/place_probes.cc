#include "agent/probes/place_probes.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "agent/perf/tracepoint.h"
#include "agent/probes/probe_code.h"

namespace flamewire::agent {
namespace {

// Also the limit of events of a recording.
constexpr std::size_t max_matches = 64;

std::string described(const ProbeSpec& probe) {
    if (probe.kind == ProbeSpec::Kind::usdt) return fmt::format("USDT probe {}:{}", probe.provider, probe.name);
    return fmt::format("function {}", probe.function);
}

}  // namespace

Result<std::shared_ptr<TracefsEvents>> new_tracefs_group(const Sysfs& sysfs) {
    for (const std::string& folder : tracefs_folders(sysfs)) {
        const auto events = sysfs.list(folder + "/events");
        if (!events && events.error().code == ErrorCode::permission)
            return fail(ErrorCode::permission, "tracefs may only be used by root here. Run the agent as root");
        if (events) return std::make_shared<TracefsEvents>("/sys/" + folder);
    }
    return fail(ErrorCode::not_found,
                "probes need tracefs, which is not mounted. Try: mount -t tracefs tracefs /sys/kernel/tracing");
}

Result<bool> create_probe(TracefsEvents& events, const ProbeDefinition& definition, const Sysfs& sysfs,
                          EventSpec& spec) {
    const std::string name = TRY(events.add(definition));
    (void)TRY(find_tracepoint(spec, events.group(), name, sysfs));
    spec.parts.back().pmu = probe_pmu;
    return true;
}

Result<std::vector<EventSpec>> ProbePlacer::place_one(const EventSpec& spec) {
    const ProbeSpec& probe = *spec.probe;
    const bool pattern = (probe.function + probe.provider + probe.name).find('*') != std::string::npos;
    struct Match {
        std::string provider, name;
        EventSpec spec;
    };
    std::vector<Match> matches;
    std::string paths;
    for (const ProbeFile& file : TRY(find_probe_files(probe.file, target_))) {
        paths += (paths.empty() ? "" : ", ") + file.path;
        for (ProbeSite& site : TRY(find_probe_sites(probe, file.file.get(), file.path, emulated_))) {
            auto match = std::ranges::find_if(matches, [&](const Match& one) {
                return !pattern || (one.provider == site.provider && one.name == site.name);
            });
            if (match == matches.end()) {
                if (matches.size() == max_matches)
                    return fail(ErrorCode::too_large,
                                fmt::format("{}: more than {} matches in {}", spec.name, max_matches, paths));
                EventSpec placed = spec;
                placed.probe.reset();
                if (pattern) placed.name = name_of_match(probe, site.provider, site.name);
                match = matches.insert(match, Match{site.provider, site.name, std::move(placed)});
            }
            const ProbeDefinition definition{site.name.empty() ? "offset" : site.name,
                                             fmt::format("/proc/self/fd/{}", file.file.get()), site.offset,
                                             site.reference_counter, std::move(site.arguments)};
            if (!events_) events_ = TRY(new_tracefs_group(sysfs_));
            (void)TRY(create_probe(*events_, definition, sysfs_, match->spec));
            places_.push_back(
                {match->spec.name, file.path, site.offset, site.emulated, match->spec.parts.back().config});
        }
    }
    if (matches.empty())
        return fail(ErrorCode::not_found, fmt::format("{}: {} has no {}", spec.name, paths, described(probe)));
    std::vector<EventSpec> placed;
    for (Match& match : matches) placed.push_back(std::move(match.spec));
    return placed;
}

Result<bool> ProbePlacer::place(std::vector<EventSpec>& specs) {
    std::vector<EventSpec> all;
    for (EventSpec& spec : specs) {
        if (!spec.probe) {
            all.push_back(std::move(spec));
            continue;
        }
        for (EventSpec& placed : TRY(place_one(spec))) {
            if (all.size() == max_matches)
                return fail(ErrorCode::too_large, fmt::format("more than {} events at once", max_matches));
            all.push_back(std::move(placed));
        }
    }
    specs = std::move(all);
    return true;
}

}  // namespace flamewire::agent
