#include "views/quality_warnings.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <ranges>
#include <string>
#include <string_view>
#include <utility>

#include "profile/query/accumulate.h"
#include "profile/query/query.h"

namespace flamewire::views {
namespace {

using profile::Weight;
using wire::Notice;

constexpr std::uint32_t threshold_percent = 5;
// The largest values of --stack-size and --max-depth.
constexpr std::uint32_t most_stack_bytes = 65'528, most_depth = 4'096;
// Events whose samples are taken at context switches.
constexpr std::array<std::string_view, 4> events_at_switches{"off-cpu", "run-queue", "io-wait", "woken-by"};
constexpr std::string_view use_tables =
    "record with --unwind dwarf, or select processes with --pid or --name: the agent then chooses a mode for each";

struct Total {
    profile::Measure measure;
    std::uint64_t all;
    explicit Total(const Weight& total) : measure(total), all(measure(total)) {}
    [[nodiscard]] bool exceeds_threshold(const Weight& part) const {
        return static_cast<double>(measure(part)) * 100 > static_cast<double>(all) * threshold_percent;
    }
    // Whether much of `whole` is outside of `part`, so that `part` alone would play it down.
    [[nodiscard]] bool leaves_much(const Weight& whole, const Weight& part) const {
        return exceeds_threshold({whole.samples - part.samples, whole.weight - part.weight});
    }
    [[nodiscard]] std::string share(const Weight& part) const {
        return fmt::format("{:.2f}%", percent(measure(part), all));
    }
};

// What the warnings are about.
struct Profile {
    const profile::Store& store;
    const View& view;
    const profile::Unwinding& unwinding;
    std::span<const Notice> notices;
    const ModuleReports& reports;
    Total total;
};

bool is_file(const profile::Store& store, profile::StringId name) {
    return std::ranges::any_of(store.modules(), [&](const profile::Module& module) {
        return module.identity.kind == symbol::ModuleKind::file && module.name == store.string(name);
    });
}

// Returns whether most unwinding that stopped early used frame pointers, so that unwind tables may find more.
bool used_frame_pointers(const profile::Unwinding& unwinding) {
    std::uint64_t stopped = 0;
    for (const profile::UnwindProcess& process : unwinding.processes)
        if (process.mode == "fp" || process.mode == "lbr") stopped += process.counts.stopped;
    return stopped * 2 > unwinding.total.stopped;
}

Weight without_callers(const profile::MissingCallers& missing) {
    Weight both = missing.incomplete;
    both += missing.skipped;
    return both;
}

Weight truncated_part(const profile::MissingCallers& missing) { return missing.truncated; }

Weight unsampled_part(const profile::MissingCallers& missing) { return missing.unsampled; }

// Returns whether that part is small in the last quarter of the view: the agent adapts to its measurements.
template <class Part>
bool only_at_first(const Profile& profile, Part part) {
    profile::Filter filter = profile.view.filter;
    const std::uint64_t begin = std::max(filter.start_ns, profile.store.first_ns());
    const std::uint64_t end = std::min(filter.end_ns, profile.store.end_ns());
    filter.start_ns = begin + (end - std::min(begin, end)) / 4 * 3;
    const Total total(profile::total_of(profile.store, filter));
    return total.all != 0 && !total.exceeds_threshold(part(profile::missing_callers(profile.store, filter)));
}

// The notice of the agent that it stopped copying stacks, if that affects this event.
const Notice* dropped_copies(const Profile& profile) {
    const bool at_switches = std::ranges::find(events_at_switches, profile.view.event_name) != events_at_switches.end();
    for (const Notice& notice : profile.notices | std::views::reverse) {
        if (notice.code != "stack-copies" || !notice.text.contains("come from frame pointers")) continue;
        if (at_switches || !notice.text.contains("of context switches")) return &notice;
    }
    return nullptr;
}

bool is_go_program_with_c(const profile::Store& store, profile::StringId module) {
    const auto& functions = store.tables().functions;
    for (profile::FunctionId id = 1; id < functions.size(); ++id)
        if (functions[id].module == module && store.string(functions[id].name).starts_with("runtime.asmcgocall"))
            return true;
    return false;
}

std::string remedy_for_module(const profile::Store& store, profile::StringId id) {
    if (!is_file(store, id))
        return "enable frame pointers in the runtime that generates this code, if it supports them";
    if (is_go_program_with_c(store, id)) return "build its C code with CGO_CFLAGS=-fno-omit-frame-pointer";
    return fmt::format("build {} with -fasynchronous-unwind-tables or -fno-omit-frame-pointer", store.string(id));
}

Notice incomplete_warning(const Profile& profile, const profile::MissingCallers& missing) {
    const Weight both = without_callers(missing);
    const Total& total = profile.total;
    const std::string_view marker =
        total.measure(missing.incomplete) >= total.measure(missing.skipped) ? "[incomplete]" : "[caller missing]";
    const std::string cause = fmt::format("{} has incomplete call chains ({}): ", total.share(both), marker);
    const auto warning = [&](std::string_view why, std::string remedy) {
        return Notice{"incomplete", cause + std::string(why), std::move(remedy)};
    };
    if (profile.unwinding.mode == "auto" && only_at_first(profile, without_callers))
        return warning("auto mode used frame pointers first, and then changed to a better mode",
                       "record for a longer time, or with --unwind dwarf");
    if (used_frame_pointers(profile.unwinding)) return warning("frame pointers ended early", std::string(use_tables));
    constexpr std::string_view no_way = "no unwind table or frame pointer led to the caller";
    if (const Notice* const dropped = dropped_copies(profile)) return warning(dropped->text, dropped->remedy);
    if (missing.module == 0) return warning(no_way, "");
    return warning(fmt::format("{}, most often from {}", no_way, profile.store.string(missing.module)),
                   remedy_for_module(profile.store, missing.module));
}

Notice truncated_warning(const Profile& profile, const Weight& truncated) {
    const std::string cause = profile.total.share(truncated) + " has its outer callers cut off ([truncated]): ";
    const profile::Unwinding& unwinding = profile.unwinding;
    if (unwinding.mode == "auto" && only_at_first(profile, truncated_part))
        return {"truncated", cause + "auto mode copied less of each stack first, and then more",
                fmt::format("record for a longer time, or with --stack-size {}", most_stack_bytes)};
    std::string options;
    if (unwinding.total.samples != 0 && unwinding.stack_bytes < most_stack_bytes)
        options += fmt::format(" --stack-size {}", most_stack_bytes);
    if (unwinding.total.samples != 0 && unwinding.max_depth < most_depth)
        options += fmt::format(" --max-depth {}", most_depth);
    return {"truncated", cause + "the stack is deeper than what was recorded",
            options.empty() ? "" : "record with" + options};
}

Notice unsampled_warning(const Profile& profile, const Weight& unsampled) {
    // Whole CPUs can be sampled instead, unless the agent reported that it needs something for that.
    const auto& notices = profile.notices;
    const auto refused = std::ranges::find(notices, "short-lived-threads", &Notice::code);
    const bool helps = refused != notices.end() && !refused->remedy.empty();
    return {
        "not-sampled",
        profile.total.share(unsampled) + " was not sampled ([not sampled]): threads exited before their next sample",
        only_at_first(profile, unsampled_part) || !helps ? "record for a longer time, or with a higher -F"
                                                         : refused->remedy};
}

// Warns about each cause that exceeds the threshold. If the causes exceed it only together, warns about the largest one.
void add_gaps(const Profile& profile, std::vector<Notice>& warnings) {
    const profile::MissingCallers missing = profile::missing_callers(profile.store, profile.view.filter);
    const Total& total = profile.total;
    const Weight incomplete = without_callers(missing);
    Weight all, large;
    Weight largest;
    for (const Weight& part : {incomplete, missing.truncated, missing.unsampled}) {
        all += part;
        if (total.exceeds_threshold(part)) large += part;
        if (total.measure(part) > total.measure(largest)) largest = part;
    }
    if (!total.exceeds_threshold(all)) return;
    const std::size_t first = warnings.size();
    const auto matters = [&](const Weight& part) {
        return total.exceeds_threshold(part) || (large == Weight{} && part == largest && warnings.size() == first);
    };
    if (matters(incomplete)) warnings.push_back(incomplete_warning(profile, missing));
    if (matters(missing.truncated)) warnings.push_back(truncated_warning(profile, missing.truncated));
    if (matters(missing.unsampled)) warnings.push_back(unsampled_warning(profile, missing.unsampled));
    if (total.leaves_much(all, large))
        warnings[first].text =
            fmt::format("{} has no complete call chain, of which {}", total.share(all), warnings[first].text);
}

// A frame-pointer chain that ends where code omits frame pointers looks complete.
void add_open_ends(const profile::Unwinding& unwinding, std::vector<Notice>& warnings) {
    const profile::UnwindCounts& counts = unwinding.total;
    if (unwinding.mode == "fp" || counts.open_end * 100 <= counts.samples * threshold_percent) return;
    warnings.push_back({"open-ended",
                        fmt::format("{:.2f}% of the stacks were unwound by frame pointers alone: callers are missing, "
                                    "without a mark, where code omits them",
                                    percent(counts.open_end, counts.samples)),
                        std::string(use_tables)});
}

// Why functions of this module have no names. No problem: its symbols do not cover the addresses.
symbol::ModuleReport unnamed_report(const Profile& profile, std::string_view name) {
    const std::vector<bool> nameless = profile::nameless_jit_modules(profile.store);
    const auto modules = profile.store.modules();
    for (profile::ModuleId id = 1; id < modules.size(); ++id) {
        if (modules[id].name != name) continue;
        const auto report = profile.reports.find(id);
        symbol::ModuleReport known = report == profile.reports.end() ? symbol::ModuleReport{} : report->second;
        if (nameless[id]) known = without_names(profile.store, modules[id]);
        if (!known.problem.empty()) return known;
    }
    symbol::ModuleReport report;
    report.problem = "its symbols do not cover the sampled addresses";
    report.remedy = "give the unstripped file with --binary FILE";
    return report;
}

// The same for frames outside of modules: a marker, or "" for addresses.
symbol::ModuleReport no_module_report(const Profile& profile, std::string_view marker) {
    symbol::ModuleReport report;
    if (marker.empty()) report.problem = "no file is known for them";
    if (marker == "[no stack]") report.problem = "these samples have no stack";
    if (marker != "[unknown process]") return report;
    report.problem = "the memory map of the process was not read";
    const auto unreadable = std::ranges::find(profile.notices, "maps-unreadable", &Notice::code);
    if (unreadable != profile.notices.end()) report.remedy = unreadable->remedy;
    return report;
}

// Warns about the largest cause, if all causes together exceed the threshold.
void add_unnamed(const Profile& profile, std::vector<Notice>& warnings) {
    const profile::Store& store = profile.store;
    const Total& total = profile.total;
    const Weight all = profile::unresolved(store, profile.view.filter);
    if (!total.exceeds_threshold(all)) return;
    std::map<std::pair<profile::StringId, std::string_view>, Weight> causes;  // by module and marker
    for (const auto& [function, self, _] : profile::functions(store, profile.view.filter)) {
        const std::string_view name = store.string(function.name);
        if (profile::is_named(function, name)) continue;
        causes[{function.module, function.kind == profile::FrameKind::unknown ? "" : name}] += self;
    }
    const auto most =
        std::ranges::max_element(causes, {}, [&](const auto& cause) { return total.measure(cause.second); });
    if (most == causes.end()) return;
    const auto& [module, marker] = most->first;
    const std::string_view name = store.string(module);
    const symbol::ModuleReport report = module != 0 ? unnamed_report(profile, name) : no_module_report(profile, marker);
    const std::string where = module != 0       ? fmt::format("in functions of {} without names", name)
                              : !marker.empty() ? std::string(marker)
                                                : "at addresses without names";
    std::string text = fmt::format("{} is {}: {}", total.share(most->second), where, report.problem);
    if (total.leaves_much(all, most->second))
        text = fmt::format("{} has no function names, of which {}", total.share(all), text);
    warnings.push_back({"unnamed", std::move(text), report.remedy});
}

}  // namespace

symbol::ModuleReport without_names(const profile::Store& store, const profile::Module& module) {
    symbol::ModuleReport report;
    report.problem = "This code was generated at run time, and nothing on the target names it";
    report.remedy = "enable perf maps in its runtime, if it supports them (/tmp/perf-PID.map)";
    for (const wire::Notice& notice : store.notices()) {
        if (!profile::lacks_symbols(notice, module.identity)) continue;
        report.problem = notice.text;
        report.remedy = notice.remedy;
    }
    return report;
}

std::vector<Notice> quality_warnings(const profile::Store& store, const View& view, const profile::Unwinding& unwinding,
                                     std::span<const Notice> notices, const ModuleReports& reports) {
    const Profile profile{store, view, unwinding, notices, reports, Total(profile::total_of(store, view.filter))};
    std::vector<Notice> warnings;
    if (profile.total.all == 0) return warnings;
    add_gaps(profile, warnings);
    add_open_ends(unwinding, warnings);
    add_unnamed(profile, warnings);
    return warnings;
}

}  // namespace flamewire::views
