#include "cli/quality_warnings.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "cli/numbers.h"
#include "cli/profile_text.h"
#include "profile/query/accumulate.h"
#include "profile/query/query.h"
#include "server/http/module_answers.h"

namespace flamewire::cli {
namespace {

using profile::Weight;

constexpr std::uint32_t threshold_percent = 5;
// The largest values of --stack-size and --max-depth.
constexpr std::uint32_t most_stack_bytes = 65'528, most_depth = 4'096;
constexpr std::string_view use_tables =
    "record with --unwind dwarf, or select processes with --pid or --name: the agent then chooses a mode for each";

struct Total {
    profile::Measure measure;
    std::uint64_t all;
    explicit Total(const Weight& total) : measure(total), all(measure(total)) {}
    [[nodiscard]] bool exceeds_threshold(const Weight& part) const {
        return static_cast<double>(measure(part)) * 100 > static_cast<double>(all) * threshold_percent;
    }
    [[nodiscard]] std::string share(const Weight& part) const { return percent(measure(part), all) + "%"; }
};

std::string warning(std::string_view cause, std::string_view remedy) {
    return fmt::format("# {}\n{}", cause, remedy.empty() ? "" : fmt::format("#   {}\n", remedy));
}

bool is_file(const profile::Store& store, profile::StringId name) {
    return std::ranges::any_of(store.modules(), [&](const profile::Module& module) {
        return module.identity.kind == symbol::ModuleKind::file && module.name == store.string(name);
    });
}

// Returns whether most unwinding that stopped early used frame pointers, so that unwind tables may find more.
bool used_frame_pointers(const server::Unwinding& unwinding) {
    std::uint64_t stopped = 0;
    for (const server::UnwindProcess& process : unwinding.processes)
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
bool only_at_first(const profile::Store& store, profile::Filter filter, Part part) {
    const std::uint64_t begin = std::max(filter.start_ns, store.first_ns());
    const std::uint64_t end = std::min(filter.end_ns, store.end_ns());
    filter.start_ns = begin + (end - std::min(begin, end)) / 4 * 3;
    const Total total(total_of(store, filter));
    return total.all != 0 && !total.exceeds_threshold(part(profile::missing_callers(store, filter)));
}

std::string incomplete_warning(const profile::Store& store, const profile::Filter& filter, const Total& total,
                               const profile::MissingCallers& missing, const server::Unwinding& unwinding) {
    const Weight both = without_callers(missing);
    if (!total.exceeds_threshold(both)) return {};
    const std::string_view marker =
        total.measure(missing.incomplete) >= total.measure(missing.skipped) ? "[incomplete]" : "[caller missing]";
    const std::string cause = fmt::format("{} has incomplete call chains ({}): ", total.share(both), marker);
    if (unwinding.mode == "auto" && only_at_first(store, filter, without_callers))
        return warning(cause + "auto mode used frame pointers first, and then changed to a better mode",
                       "record for a longer time, or with --unwind dwarf");
    if (used_frame_pointers(unwinding)) return warning(cause + "frame pointers ended early", use_tables);
    const std::string_view module = store.string(missing.module);
    const std::string from = missing.module == 0 ? "" : fmt::format(", most often from {}", module);
    const std::string remedy =
        missing.module == 0 ? ""
        : is_file(store, missing.module)
            ? fmt::format("build {} with -fasynchronous-unwind-tables or -fno-omit-frame-pointer", module)
            : "enable frame pointers in the runtime that generates this code, if it supports them";
    return warning(cause + "no unwind table or frame pointer led to the caller" + from, remedy);
}

std::string truncated_warning(const profile::Store& store, const profile::Filter& filter, const Total& total,
                              const Weight& truncated, const server::Unwinding& unwinding) {
    if (!total.exceeds_threshold(truncated)) return {};
    const std::string cause = total.share(truncated) + " has its outer callers cut off ([truncated]): ";
    if (unwinding.mode == "auto" && only_at_first(store, filter, truncated_part))
        return warning(cause + "auto mode copied less of each stack first, and then more",
                       fmt::format("record for a longer time, or with --stack-size {}", most_stack_bytes));
    std::string options;
    if (unwinding.total.samples != 0 && unwinding.stack_bytes < most_stack_bytes)
        options += fmt::format(" --stack-size {}", most_stack_bytes);
    if (unwinding.total.samples != 0 && unwinding.max_depth < most_depth)
        options += fmt::format(" --max-depth {}", most_depth);
    return warning(cause + "the stack is deeper than what was recorded",
                   options.empty() ? "" : "record with" + options);
}

// A frame-pointer chain that ends where code omits frame pointers looks complete.
std::string open_end_warning(const server::Unwinding& unwinding) {
    const server::UnwindCounts& counts = unwinding.total;
    if (unwinding.mode == "fp" || counts.open_end * 100 <= counts.samples * threshold_percent) return {};
    return warning(fmt::format("{}% of the stacks were unwound by frame pointers alone: callers are missing, without a "
                               "mark, where code omits them",
                               percent(counts.open_end, counts.samples)),
                   use_tables);
}

std::string unsampled_warning(const profile::Store& store, const profile::Filter& filter, const Total& total,
                              const Weight& unsampled) {
    if (!total.exceeds_threshold(unsampled)) return {};
    const char* const remedy =
        only_at_first(store, filter, unsampled_part)
            ? "record for a longer time, or with a higher -F"
            : "run the agent as root, so that it can sample whole CPUs, or record with a higher -F";
    return warning(total.share(unsampled) + " was not sampled ([not sampled]): threads exited before their next sample",
                   remedy);
}

std::string unnamed_warning(const profile::Store& store, const server::View& view, const Total& total,
                            const ModuleReports& reports) {
    std::map<profile::StringId, Weight> by_module;
    for (const profile::FunctionRow& row : profile::functions(store, view.filter))
        if (row.function.kind == profile::FrameKind::unknown && row.function.module != 0)
            by_module[row.function.module] += row.self;
    const auto most =
        std::ranges::max_element(by_module, {}, [&](const auto& entry) { return total.measure(entry.second); });
    if (most == by_module.end() || !total.exceeds_threshold(most->second)) return {};
    const std::string_view name = store.string(most->first);
    const std::vector<bool> nameless = profile::nameless_jit_modules(store);
    for (profile::ModuleId id = 1; id < store.modules().size(); ++id) {
        const profile::Module& module = store.modules()[id];
        if (module.name != name) continue;
        const auto report = reports.find(id);
        symbol::ModuleReport known = report == reports.end() ? symbol::ModuleReport{} : report->second;
        if (nameless[id]) known = server::without_names(store, module);
        if (known.problem.empty()) continue;
        return warning(
            fmt::format("{} is in functions of {} without names: {}", total.share(most->second), name, known.problem),
            known.remedy);
    }
    return {};
}

}  // namespace

std::string quality_warnings(const profile::Store& store, const server::View& view, const server::SessionInfo& info,
                             const ModuleReports& reports) {
    const Total total(total_of(store, view.filter));
    if (total.all == 0) return {};
    const profile::MissingCallers missing = profile::missing_callers(store, view.filter);
    return incomplete_warning(store, view.filter, total, missing, info.unwinding) +
           truncated_warning(store, view.filter, total, missing.truncated, info.unwinding) +
           open_end_warning(info.unwinding) + unsampled_warning(store, view.filter, total, missing.unsampled) +
           unnamed_warning(store, view, total, reports);
}

}  // namespace flamewire::cli
