#include "cli/quality_warnings.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "cli/numbers.h"
#include "cli/profile_text.h"
#include "profile/accumulate.h"
#include "profile/query.h"
#include "server/http/module_answers.h"

namespace flamewire::cli {
namespace {

using profile::Weight;

constexpr std::uint64_t said_above_percent = 5;
constexpr std::string_view tables_remedy =
    "record with --unwind dwarf, or chosen processes by --pid or --name: what each of them needs is measured";
// What the kernel copies of a stack at most, and how many frames an agent takes at most.
constexpr std::uint32_t most_stack_bytes = 65'528, most_depth = 4'096;

struct Whole {
    profile::Measure measure;
    std::uint64_t all;
    explicit Whole(const Weight& total) : measure(total), all(measure(total)) {}
    [[nodiscard]] bool is_said(const Weight& part) const { return measure(part) * 100 > all * said_above_percent; }
    [[nodiscard]] std::string share(const Weight& part) const { return percent(measure(part), all); }
};

std::string lines(std::string_view cause, std::string_view remedy) {
    return fmt::format("# {}\n{}", cause, remedy.empty() ? "" : fmt::format("#   {}\n", remedy));
}

bool is_file(const profile::Store& store, profile::StringId name) {
    return std::ranges::any_of(store.modules(), [&](const profile::Module& module) {
        return module.identity.kind == symbol::ModuleKind::file && module.name == store.string(name);
    });
}

// Whether most stacks that stopped were followed by frame pointers, where unwind tables might have gone on.
bool stopped_by_chains(const server::Unwinding& unwinding) {
    std::uint64_t by_chains = 0;
    for (const server::UnwindProcess& process : unwinding.processes)
        if (process.mode == "fp" || process.mode == "lbr") by_chains += process.counts.stopped;
    return by_chains * 2 > unwinding.total.stopped;
}

// Of stacks that nothing told how to go on.
std::string incomplete_lines(const profile::Store& store, const Whole& whole, const profile::MissingCallers& missing,
                             const server::Unwinding& unwinding) {
    Weight both = missing.incomplete;
    both += missing.skipped;
    if (!whole.is_said(both)) return {};
    const std::string_view marker =
        whole.measure(missing.incomplete) >= whole.measure(missing.skipped) ? "[incomplete]" : "[caller missing]";
    const std::string stands = fmt::format("{}% lacks callers: {} stands where", whole.share(both), marker);
    if (stopped_by_chains(unwinding)) return lines(stands + " frame pointers led no further", tables_remedy);
    const std::string cause = stands + " neither an unwind table nor a frame pointer led to them";
    if (missing.module == 0) return lines(cause, "");
    const std::string_view module = store.string(missing.module);
    if (is_file(store, missing.module))
        return lines(fmt::format("{}, most often from {}", cause, module),
                     fmt::format("build {} with -fasynchronous-unwind-tables or -fno-omit-frame-pointer", module));
    return lines(cause + ", most often from code made at run time",
                 "have the runtime that makes it keep frame pointers, if it can");
}

std::string truncated_lines(const Whole& whole, const Weight& truncated, const server::Unwinding& unwinding) {
    if (!whole.is_said(truncated)) return {};
    std::vector<std::string> remedies;
    if (unwinding.total.samples != 0 && unwinding.stack_bytes < most_stack_bytes)
        remedies.push_back(fmt::format("--stack-size {}", most_stack_bytes));
    if (unwinding.total.samples != 0 && unwinding.max_depth < most_depth)
        remedies.push_back(fmt::format("--max-depth {}", most_depth));
    return lines(
        fmt::format("{}% lacks callers: [truncated] stands where a stack is deeper than what was recorded of it",
                    whole.share(truncated)),
        remedies.empty() ? "" : fmt::format("record with {}", fmt::join(remedies, " ")));
}

// Chains of frame pointers end where a function has none, and look whole.
std::string open_end_lines(const server::Unwinding& unwinding) {
    const server::UnwindCounts& counts = unwinding.total;
    if (unwinding.mode == "fp" || counts.open_end * 100 <= counts.samples * said_above_percent) return {};
    return lines(
        fmt::format("{}% of the stacks go by frame pointers alone: they lack callers, unmarked, where code has none",
                    percent(counts.open_end, counts.samples)),
        tables_remedy);
}

std::string unnamed_lines(const profile::Store& store, const server::View& view, const Whole& whole,
                          const ModuleReports& reports) {
    if (!whole.is_said(profile::unresolved(store, view.filter))) return {};
    std::map<profile::StringId, Weight> by_module;
    for (const profile::FunctionRow& row : profile::functions(store, view.filter))
        if (row.function.kind == profile::FrameKind::unknown && row.function.module != 0)
            by_module[row.function.module] += row.self;
    const auto most =
        std::ranges::max_element(by_module, {}, [&](const auto& entry) { return whole.measure(entry.second); });
    if (most == by_module.end()) return {};
    const std::string_view name = store.string(most->first);
    const std::vector<bool> nameless = profile::nameless_jit_modules(store);
    for (profile::ModuleId id = 1; id < store.modules().size(); ++id) {
        const profile::Module& module = store.modules()[id];
        if (module.name != name) continue;
        const auto report = reports.find(id);
        symbol::ModuleReport known = report == reports.end() ? symbol::ModuleReport{} : report->second;
        if (nameless[id]) known = server::without_names(store, module);
        if (known.problem.empty()) continue;
        return lines(fmt::format("{}% is code of {} without names: {}", whole.share(most->second), name, known.problem),
                     known.remedy);
    }
    return {};
}

}  // namespace

std::string quality_warnings(const profile::Store& store, const server::View& view, const server::SessionInfo& info,
                         const ModuleReports& reports) {
    const Whole whole(total_of(store, view.filter));
    const profile::MissingCallers missing = profile::missing_callers(store, view.filter);
    return incomplete_lines(store, whole, missing, info.unwinding) +
           truncated_lines(whole, missing.truncated, info.unwinding) + open_end_lines(info.unwinding) +
           unnamed_lines(store, view, whole, reports);
}

}  // namespace flamewire::cli
