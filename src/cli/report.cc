#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string_view>

#include "cli/command.h"
#include "cli/open_profile.h"
#include "cli/profile_text.h"
#include "cli/terminal.h"
#include "cli/view_options.h"
#include "counters/sched_table.h"
#include "profile/formats/json.h"
#include "profile/query/thread_states.h"
#include "views/quality_warnings.h"

namespace flamewire::cli {
namespace {

struct ReportOptions {
    std::string file;
    OpenOptions open;
    OutputOptions output;
    views::Parameters view;
    TableOptions table;
    std::string sort = "self", only, group;
    bool inverted = false, collapse = false, sched = false;
};

// Prints the tables of all events in one document, like the export.
Result<int> print_json(const server::Session& session, const ReportOptions& options,
                       const std::vector<views::View>& views) {
    profile::Filter filter = views.empty() ? profile::Filter{} : views.front().filter;
    if (options.view.event.empty()) filter.event.reset();
    const std::string text =
        TRY(session.read([&](const profile::Store& store) { return profile::json(store, filter); })) + "\n";
    return print_paged(text, options.output);
}

std::string tables_of(const profile::Store& store, const views::View& view, const std::string& warnings,
                      const ReportOptions& options, const OutputStyle& style) {
    std::string text = "\n" + event_head(store, view) + warnings;
    if (options.only != "tree")
        text += "\n" + function_table(store, view, profile::functions(store, view.filter), options.table, style);
    if (options.only != "functions") {
        const profile::TreeOptions shape{.inverted = options.inverted, .collapse_recursion = options.collapse};
        const auto group = profile::parse_group(options.group).value_or(profile::GroupBy::none);
        const profile::GroupedTree tree = profile::grouped_tree(store, view.filter, group, shape);
        text += "\n" + call_tree_text(store, tree, options.table, style);
    }
    return text;
}

constexpr std::string_view wake_up_note =
    "# Wake-up latency counts as Blocked\n"
    "#   record woken-by as well to count it as Runnable: --events off-cpu,woken-by\n";

// Prints how threads spent their time, instead of functions.
Result<int> print_scheduling(const server::Session& session, const ReportOptions& options) {
    views::Parameters view = options.view;
    view.event.clear();
    const std::vector<views::View> views = TRY(views_of(session, view));
    const profile::Filter filter = views.empty() ? profile::Filter{} : views.front().filter;
    std::vector<counters::SchedLine> lines;
    session.read([&](const profile::Store& store) {
        for (const profile::Scheduling& one : profile::scheduling(store, filter)) {
            const profile::Thread& thread = store.threads()[one.thread];
            lines.push_back({std::string(thread.comm), thread.tid, one.times});
        }
    });
    if (lines.empty())
        return fail(ErrorCode::not_found,
                    "there is no data about what threads did with their time; record with --events off-cpu");
    std::vector<const counters::SchedLine*> shown;
    shown.reserve(lines.size());
    for (const counters::SchedLine& line : lines) shown.push_back(&line);
    const server::SessionInfo info = session.info();
    const bool has_wakers =
        std::ranges::any_of(info.events, [](const server::EventInfo& event) { return event.name == "woken-by"; });
    return print_paged(
        session_head(info) + std::string(has_wakers ? "" : wake_up_note) + "\n" +
            counters::sched_table(shown, options.table.most_rows, style_of_output(options.output).columns),
        options.output);
}

Result<int> report(const ReportOptions& options) {
    const OpenProfile open = TRY(open_profile(options.file, options.open));
    const server::Session& session = *open.session;
    if (options.sched) return print_scheduling(session, options);
    const std::vector<views::View> views = TRY(views_of(session, options.view));
    if (options.output.json) return print_json(session, options, views);
    const OutputStyle style = style_of_output(options.output);
    const server::SessionInfo info = session.info();
    const views::ModuleReports reports = session.symbols().reports();
    std::string text = session_head(info);
    if (views.empty()) text += "# no samples\n";
    for (const views::View& view : views)
        text += session.read([&](const profile::Store& store) {
            return tables_of(store, view,
                             notice_lines(views::quality_warnings(store, view, info.unwinding, info.notices, reports)),
                             options, style);
        });
    return print_paged(text, options.output);
}

}  // namespace

Action add_report(CLI::App& command) {
    auto options = std::make_shared<ReportOptions>();
    command.add_option("FILE", options->file, "session or profile (default: the newest session)");
    add_view_options(command, options->view);
    add_group_option(command, options->group);
    command.add_option("--percent-limit", options->table.percent_limit, "leave out what is below this share")
        ->type_name("PERCENT")
        ->capture_default_str()
        ->check(CLI::Range(0.0, 100.0));
    command.add_option("-n,--limit", options->table.most_rows, "functions to show at most (default: all)")
        ->type_name("N");
    command.add_option("--sort", options->sort, "functions by self or total")
        ->type_name("BY")
        ->capture_default_str()
        ->check(CLI::IsMember({"self", "total"}));
    command.add_option("--only", options->only, "functions or tree (default: both)")
        ->type_name("PART")
        ->check(CLI::IsMember({"functions", "tree"}));
    command.add_flag("--inverted", options->inverted, "the tree from the innermost functions to their callers");
    command.add_flag("--collapse-recursion", options->collapse, "a function that calls itself is one line");
    command.add_flag("--sched", options->sched, "what threads did with their time, waits for a CPU and turns on one")
        ->excludes("--sort")
        ->excludes("--only")
        ->excludes("--inverted");
    add_output_options(command, options->output);
    add_open_options(command, options->open);
    return [options] {
        options->table.by_total = options->sort == "total";
        return report(*options);
    };
}

}  // namespace flamewire::cli
