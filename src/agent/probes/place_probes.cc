#include "agent/probes/place_probes.h"

#include <elf.h>
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "agent/log.h"
#include "agent/perf/tracepoint.h"
#include "agent/probes/probe_arguments.h"
#include "agent/probes/probe_sites.h"
#include "agent/process/kallsyms.h"
#include "agent/process/proc_text.h"
#include "elf/function_name.h"

namespace flamewire::agent {
namespace {

// Also the limit of events of a recording.
constexpr std::size_t max_matches = 64;
// A USDT probe and a function of several files have more than one place each.
constexpr std::size_t max_places = 1'024;
constexpr std::size_t kallsyms_bytes = 65'536;

// e_machine of this program.
#if defined(__x86_64__)
constexpr std::uint16_t own_machine = EM_X86_64;
#elif defined(__aarch64__)
constexpr std::uint16_t own_machine = EM_AARCH64;
#elif defined(__arm__)
constexpr std::uint16_t own_machine = EM_ARM;
#else
constexpr std::uint16_t own_machine = EM_NONE;
#endif

std::string described(const ProbeSpec& probe) {
    if (probe.kind == ProbeSpec::Kind::usdt) return fmt::format("USDT probe {}:{}", probe.provider, probe.name);
    return fmt::format("function {}", probe.function);
}

// What the kernel's own names of argument registers replace where it does not know $arg1.
Result<std::vector<ProbeArgument>> with_own_registers(std::vector<ProbeArgument> arguments) {
    for (ProbeArgument& argument : arguments) {
        auto fetch = with_argument_registers(argument.fetch, own_machine);
        if (!fetch)
            return fail(ErrorCode::unsupported,
                        fmt::format("the value '{}' is not available in this kernel", argument.fetch));
        argument.fetch = *std::move(fetch);
    }
    return arguments;
}

// Functions of the kernel and its modules whose names match a pattern, each name once.
Result<std::vector<std::string>> kernel_functions(std::string_view pattern) {
    auto lines = LineReader::open("/proc/kallsyms", kallsyms_bytes);
    if (!lines)
        return fail(lines.error().code, "patterns of kernel functions need /proc/kallsyms: " + lines.error().message);
    std::vector<std::string> names;
    for (std::string_view line; lines->next(line);) {
        const auto entry = parse_kallsyms_line(line);
        // A part that the compiler has moved elsewhere is not a function.
        if (!entry || !entry->is_code() || entry->name.ends_with(".cold")) continue;
        if (!elf::matches_function_name(pattern, entry->name) || std::ranges::find(names, entry->name) != names.end())
            continue;
        if (names.size() == max_matches)
            return fail(ErrorCode::too_large,
                        fmt::format("kprobe:{}: more than {} functions match", pattern, max_matches));
        names.emplace_back(entry->name);
    }
    if (names.empty()) return fail(ErrorCode::not_found, fmt::format("this kernel has no function {}", pattern));
    return names;
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
    if (!definition.path.empty()) spec.parts.back().pmu = probe_pmu;
    return true;
}

Result<std::vector<EventSpec>> ProbePlacer::place_in_kernel(const EventSpec& spec) {
    const ProbeSpec& probe = *spec.probe;
    const bool pattern = probe.function.find('*') != std::string::npos;
    const std::vector<std::string> functions =
        pattern ? TRY(kernel_functions(probe.function)) : std::vector{probe.function};
    if (!events_) events_ = TRY(new_tracefs_group(sysfs_));
    const std::vector<ProbeArgument> arguments =
        probe.returns || events_->knows_kernel_arguments() ? probe.arguments : TRY(with_own_registers(probe.arguments));
    std::vector<EventSpec> placed;
    for (const std::string& function : functions) {
        EventSpec one = spec;
        one.probe.reset();
        if (pattern) one.name = name_of_match(probe, {}, function);
        if (auto created =
                create_probe(*events_, {function, {}, probe.offset, 0, arguments, probe.returns}, sysfs_, one);
            !created) {
            // Of a pattern, the kernel may refuse some functions.
            const ErrorCode code = created.error().code;
            const bool of_function = code == ErrorCode::invalid || code == ErrorCode::not_found;
            if (!pattern || !of_function || (placed.empty() && function == functions.back()))
                return std::unexpected(std::move(created).error());
            log("{}", created.error().message);
            continue;
        }
        log("{}: what a hit costs is not known", one.name);
        placed.push_back(std::move(one));
    }
    return placed;
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
        auto sites = find_probe_sites(probe, file.file.get(), file.path, emulated_, target_.by_server);
        if (!sites) {
            sites.error().message.insert(0, spec.name + ": ");
            return std::unexpected(std::move(sites).error());
        }
        for (ProbeSite& site : *sites) {
            if (places_.size() == max_places)
                return fail(ErrorCode::too_large, fmt::format("{}: more than {} places", spec.name, max_places));
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
    placed.reserve(matches.size());
    for (Match& match : matches) {
        keep_common_values(match.spec);
        placed.push_back(std::move(match.spec));
    }
    return placed;
}

Result<bool> ProbePlacer::place(std::vector<EventSpec>& specs) {
    std::vector<EventSpec> all;
    const auto add = [&](EventSpec spec) -> Result<bool> {
        // Patterns may overlap.
        if (std::ranges::find(all, spec.name, &EventSpec::name) != all.end()) return true;
        if (all.size() == max_matches)
            return fail(ErrorCode::too_large, fmt::format("more than {} events at once", max_matches));
        all.push_back(std::move(spec));
        return true;
    };
    for (EventSpec& spec : specs) {
        if (!spec.probe) {
            (void)TRY(add(std::move(spec)));
            continue;
        }
        for (EventSpec& placed : TRY(spec.probe->in_kernel() ? place_in_kernel(spec) : place_one(spec)))
            (void)TRY(add(std::move(placed)));
    }
    specs = std::move(all);
    return true;
}

}  // namespace flamewire::agent
