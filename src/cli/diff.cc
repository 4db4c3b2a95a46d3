#include "profile/query/diff.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "base/decimal.h"
#include "base/json_writer.h"
#include "base/utf8.h"
#include "cli/command.h"
#include "cli/numbers.h"
#include "cli/open_profile.h"
#include "cli/profile_text.h"
#include "cli/terminal.h"
#include "cli/view_options.h"
#include "profile/formats/collapsed_import.h"
#include "profile/query/accumulate.h"

namespace flamewire::cli {
namespace {

struct DiffOptions {
    std::string before, after;
    OpenOptions open;
    OutputOptions output;
    views::Parameters view;
    double percent_limit = 0.5;
    std::size_t most_rows = 0;
    std::string by = "total", sort = "self";
};

// Shares in percent: of the total before, scaled to the duration (by time), or of each side's own total (by total).
struct Row {
    const profile::FunctionDiff* diff;
    double self_before, self_after, total_before, total_after;
    [[nodiscard]] double change(bool of_self) const {
        return of_self ? self_after - self_before : total_after - total_before;
    }
};

struct Comparison {
    std::string event, unit;
    profile::Weight before, after;
    double seconds_before = 0, seconds_after = 0;
    std::vector<profile::FunctionDiff> functions;
    std::vector<Row> rows;
};

struct Sides {
    const server::Session& before;
    const server::Session& after;
};

Result<Comparison> compare(const profile::Store& before, const profile::Store& after, const Sides& sides,
                           const DiffOptions& options) {
    views::Parameters first = options.view, same = options.view;
    if (&sides.before == &sides.after) {
        first.tids = {profile::two_sides_before};
        same.tids = {profile::two_sides_after};
    }
    const views::View left = TRY(resolve_view(first, before, sides.before.status().start_ns()));
    if (same.event.empty()) same.event = left.event_name;
    const views::View right = TRY(resolve_view(same, after, sides.after.status().start_ns()));
    Comparison result;
    result.event = left.event_name;
    result.unit = left.unit;
    result.before = profile::total_of(before, left.filter);
    result.after = profile::total_of(after, right.filter);
    result.seconds_before =
        static_cast<double>(profile::covered_ns(before, left.filter, sides.before.status().start_ns())) / 1e9;
    result.seconds_after =
        static_cast<double>(profile::covered_ns(after, right.filter, sides.after.status().start_ns())) / 1e9;
    result.functions = profile::diff_functions({before, left.filter}, {after, right.filter});
    // Compare weights only if both sides have them in the same unit, else samples.
    const bool samples = result.before.weight == 0 || result.after.weight == 0 || left.unit != right.unit;
    const auto measure = [&](const profile::Weight& weight) {
        return static_cast<double>(samples ? weight.samples : weight.weight);
    };
    if (options.by == "time" && !(profile::has_times(before) && profile::has_times(after)))
        return fail(ErrorCode::invalid, "one of the profiles has no times: compare by total");
    const double whole_before = measure(result.before);
    const double whole_after =
        options.by == "total" ? measure(result.after) : whole_before / result.seconds_before * result.seconds_after;
    const auto share = [](double part, double whole) { return whole == 0 ? 0 : part / whole * 100; };
    for (const profile::FunctionDiff& diff : result.functions)
        result.rows.push_back(
            {&diff, share(measure(diff.self.before), whole_before), share(measure(diff.self.after), whole_after),
             share(measure(diff.total.before), whole_before), share(measure(diff.total.after), whole_after)});
    const bool of_self = options.sort == "self";
    std::ranges::stable_sort(result.rows, std::greater{},
                             [&](const Row& row) { return std::fabs(row.change(of_self)); });
    return result;
}

std::string text_of(const Comparison& comparison, const DiffOptions& options, const OutputStyle& style) {
    std::string out =
        fmt::format("# {}: {} samples before, {} after; shares by {}\n\n", printable(comparison.event),
                    with_commas(comparison.before.samples), with_commas(comparison.after.samples), options.by);
    const bool of_self = options.sort == "self";
    out += fmt::format(" {0} before  {0} after    Change  Function\n", of_self ? " Self" : "Total");
    std::size_t shown = 0;
    constexpr unsigned left = 36, least = 20;
    const unsigned width = style.columns == 0 ? 0 : style.columns > left + least ? style.columns - left : least;
    for (const Row& row : comparison.rows) {
        const double change = row.change(of_self);
        if (std::fabs(change) < options.percent_limit || change == 0) continue;
        if (options.most_rows != 0 && shown == options.most_rows) break;
        ++shown;
        const auto& [before, after] = of_self ? row.diff->self : row.diff->total;
        const auto& whole = row.diff->total;
        out += fmt::format("{:>11.2f}% {:>10.2f}%  ", of_self ? row.self_before : row.total_before,
                           of_self ? row.self_after : row.total_after);
        out += style.styled(fmt::format("{:>+8.2f}", change),
                            fmt::fg(change > 0 ? fmt::terminal_color::red : fmt::terminal_color::blue));
        out += "  " + shown_function(row.diff->function.name, row.diff->function.module, width);
        if (whole.before.samples == 0 && after.samples != 0) out += " (new)";
        if (whole.after.samples == 0 && before.samples != 0) out += " (gone)";
        out += '\n';
    }
    if (shown == 0)
        out += fmt::format("# no function changed by {:g}% or more\n", options.percent_limit);
    else if (shown < comparison.rows.size())
        out += fmt::format("# and {} more functions\n", with_commas(comparison.rows.size() - shown));
    return out;
}

std::string json_of(const Comparison& comparison, const DiffOptions& options) {
    JsonWriter json;
    const auto side = [&](const char* name, const profile::Weight& total, double seconds) {
        json.key(name);
        json.object();
        json.member("samples", total.samples);
        json.member("weight", total.weight);
        json.member("seconds", seconds);
        json.end_object();
    };
    json.object();
    json.member("event", comparison.event);
    json.member("unit", comparison.unit);
    json.member("by", options.by);
    side("before", comparison.before, comparison.seconds_before);
    side("after", comparison.after, comparison.seconds_after);
    json.list("functions", comparison.rows, [&](const Row& row) {
        json.object();
        json.member("name", row.diff->function.name);
        json.member("module", row.diff->function.module);
        const auto pair = [&](const char* name, const profile::WeightPair& weights, double before, double after) {
            json.key(name);
            json.object();
            json.member("before_weight", weights.before.weight);
            json.member("after_weight", weights.after.weight);
            json.member("before_samples", weights.before.samples);
            json.member("after_samples", weights.after.samples);
            json.member("before_percent", before);
            json.member("after_percent", after);
            json.end_object();
        };
        pair("self", row.diff->self, row.self_before, row.self_after);
        pair("total", row.diff->total, row.total_before, row.total_after);
        json.end_object();
    });
    json.end_object();
    return json.take() + "\n";
}

Result<std::string> compared(const profile::Store& first, const profile::Store& second, const server::Session& before,
                             const server::Session& after, const DiffOptions& options) {
    const Comparison comparison = TRY(compare(first, second, {before, after}, options));
    if (options.output.json) return json_of(comparison, options);
    return (&before == &after ? session_head(before.info())
                              : "# before: " + session_head(before.info()).substr(2) +
                                    "# after: " + session_head(after.info()).substr(2)) +
           text_of(comparison, options, style_of_output(options.output));
}

// A difffolded.pl file has both sides.
Result<int> diff_of_one(const DiffOptions& options) {
    const OpenProfile both = TRY(open_profile(options.before, options.open));
    const std::vector<wire::Notice> notices = both.session->info().notices;
    if (std::ranges::none_of(notices, [](const auto& notice) { return notice.code == profile::two_sides_note; }))
        return fail(ErrorCode::invalid,
                    fmt::format("{} has only one column of counts: specify AFTER, the profile to compare with",
                                options.before));
    if (!options.view.tids.empty())
        return fail(ErrorCode::invalid, "--tid cannot be used with a file of two columns: they are stored as threads");
    Result<std::string> text = both.session->read(
        [&](const profile::Store& store) { return compared(store, store, *both.session, *both.session, options); });
    return print_paged(TRY(std::move(text)), options.output);
}

Result<int> diff(const DiffOptions& options) {
    if (options.after.empty()) return diff_of_one(options);
    const OpenProfile before = TRY(open_profile(options.before, options.open));
    const OpenProfile after = TRY(open_profile(options.after, options.open));
    Result<std::string> text = before.session->read([&](const profile::Store& first) {
        return after.session->read([&](const profile::Store& second) {
            return compared(first, second, *before.session, *after.session, options);
        });
    });
    return print_paged(TRY(std::move(text)), options.output);
}

}  // namespace

Action add_diff(CLI::App& command) {
    auto options = std::make_shared<DiffOptions>();
    command.add_option("BEFORE", options->before, "session or profile")->required();
    command.add_option("AFTER", options->after, "session or profile; omit it if BEFORE is a difffolded.pl file");
    command.add_option("--by", options->by, "shares of each profile's own total, or of weight per second")
        ->type_name("total|time")
        ->capture_default_str()
        ->check(CLI::IsMember({"total", "time"}));
    command.add_option("--sort", options->sort, "by the change of self or total")
        ->type_name("BY")
        ->capture_default_str()
        ->check(CLI::IsMember({"self", "total"}));
    command.add_option("--percent-limit", options->percent_limit, "leave out changes below this")
        ->type_name("PERCENT")
        ->capture_default_str()
        ->check(CLI::Range(0.0, 100.0));
    command.add_option("-n,--limit", options->most_rows, "functions to show at most (default: all)")->type_name("N");
    add_view_options(command, options->view);
    add_output_options(command, options->output);
    add_open_options(command, options->open);
    return [options] { return diff(*options); };
}

}  // namespace flamewire::cli
