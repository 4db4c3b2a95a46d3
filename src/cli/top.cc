#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <thread>

#include "base/decimal.h"
#include "base/json_writer.h"
#include "cli/agent_process.h"
#include "cli/command.h"
#include "cli/hit_text.h"
#include "cli/live_profile.h"
#include "cli/numbers.h"
#include "cli/open_profile.h"
#include "cli/profile_text.h"
#include "cli/screen.h"
#include "cli/terminal.h"
#include "server/options.h"

namespace flamewire::cli {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

constexpr milliseconds poll_interval{50};

struct TopOptions {
    AgentOptions agent;
    OpenOptions open;
    OutputOptions output;
    double delay_s = 2, window_s = 10;
    std::uint64_t rounds = 0;
    std::string by, value;  // a table of hits by a key, instead of functions
};

// Display state, which keys change.
struct Showing {
    std::size_t event = 0;  // index among events with samples
    bool by_total = false, tree = false, all_time = false, paused = false, help = false;
};

constexpr std::string_view help_text =
    "\n  q      end\n  space  pause and resume\n  s      order by self or by total\n  t      functions or the call "
    "tree\n"
    "  a      the last seconds or everything since the start\n  e      the next event\n  ?      this\n";

struct Part {
    views::View view;
    std::size_t index = 0, count = 0;  // among events with samples
};

Part part_of(const profile::Store& store, const Showing& showing, const TopOptions& options) {
    Part part;
    std::vector<profile::EventId> events;
    for (profile::EventId event = 1; event < store.events().size(); ++event)
        if (store.total(event).samples != 0) events.push_back(event);
    part.count = events.size();
    if (events.empty()) return part;
    part.index = showing.event % events.size();
    part.view.event = events[part.index];
    part.view.event_name = store.events()[part.view.event].name;
    part.view.unit = store.events()[part.view.event].unit;
    part.view.filter.event = part.view.event;
    const auto window_ns = static_cast<std::uint64_t>(options.window_s * 1e9);
    const std::uint64_t until_ns = store.known_until_ns();
    if (!showing.all_time && window_ns != 0 && until_ns > window_ns) part.view.filter.start_ns = until_ns - window_ns;
    return part;
}

std::string head_of(const profile::Store& store, const Part& part, const Showing& showing, const TopOptions& options) {
    const profile::Weight total = profile::total_of(store, part.view.filter);
    std::uint64_t lost = 0;
    for (const profile::LossTotal& loss : store.losses())
        if (!loss.by_store && server::is_lost(loss.reason)) lost += loss.count;
    std::string head = fmt::format("{}  {}", options.agent.target(), part.view.event_name);
    if (part.count > 1) head += fmt::format(" ({} of {})", part.index + 1, part.count);
    head += fmt::format("  {} samples, {}", with_commas(total.samples),
                        human_weight(static_cast<double>(total.weight), part.view.unit));
    head += showing.all_time || options.window_s == 0 ? " since the start"
                                                      : fmt::format(" in the last {:g} s", options.window_s);
    if (lost != 0) head += fmt::format("  {} lost", with_commas(lost));
    if (showing.paused) head += "  paused";
    return head + "\n";
}

// Of the last seconds, or of everything. The error of a wrong key is the page.
Result<views::HitTable> hits_by_key(const profile::Store& store, const Showing& showing, const TopOptions& options) {
    profile::Filter filter;
    const auto window_ns = static_cast<std::uint64_t>(options.window_s * 1e9);
    const std::uint64_t until_ns = store.known_until_ns();
    if (!showing.all_time && window_ns != 0 && until_ns > window_ns) filter.start_ns = until_ns - window_ns;
    return views::hit_table(store, views::HitValues(store), filter, {}, options.by, options.value);
}

std::string hits_page(const profile::Store& store, const Showing& showing, const TopOptions& options,
                      const OutputStyle& style, std::size_t rows) {
    std::string head = options.agent.target();
    head += showing.all_time || options.window_s == 0 ? "  since the start"
                                                      : fmt::format("  in the last {:g} s", options.window_s);
    head += showing.paused ? "  paused\n" : "\n";
    if (store.hits().next() == 0) return head + "no hits yet\n";
    const auto table = hits_by_key(store, showing, options);
    return head + (table ? hit_table_text(*table, options.by, options.value, rows, false, style)
                         : table.error().message + "\n");
}

std::string page_of(const profile::Store& store, const Showing& showing, const TopOptions& options,
                    const OutputStyle& style, std::size_t rows) {
    if (showing.help) return std::string(help_text);
    if (!options.by.empty()) return hits_page(store, showing, options, style, rows);
    const Part part = part_of(store, showing, options);
    if (part.count == 0) return fmt::format("{}  no samples yet\n", options.agent.target());
    const TableOptions table{.percent_limit = 0.1, .most_rows = rows, .by_total = showing.by_total};
    std::string page = head_of(store, part, showing, options);
    if (showing.tree)
        page += call_tree_text(store, {profile::call_tree(store, part.view.filter), {}}, table, style);
    else
        page += function_table(store, part.view, profile::functions(store, part.view.filter), table, style);
    return page;
}

std::string json_of(const profile::Store& store, const TopOptions& options) {
    if (!options.by.empty()) {
        JsonWriter json;
        json.object();
        json.member("by", options.by);
        json.member("value", options.value);
        const auto table = hits_by_key(store, {}, options);
        views::write_json(json, table.value_or(views::HitTable{}), !options.value.empty());
        json.end_object();
        return json.take() + "\n";
    }
    const Part part = part_of(store, {}, options);
    JsonWriter json;
    json.object();
    json.member("event", part.view.event_name);
    json.member("unit", part.view.unit);
    const profile::Weight total = part.count == 0 ? profile::Weight{} : profile::total_of(store, part.view.filter);
    json.member("samples", total.samples);
    json.member("weight", total.weight);
    const auto rows =
        part.count == 0 ? std::vector<profile::FunctionRow>{} : profile::functions(store, part.view.filter);
    json.list("functions", rows, [&](const profile::FunctionRow& row) {
        json.object();
        json.member("name", store.string(row.function.name));
        json.member("module", store.string(row.function.module));
        json.member("self_samples", row.self.samples);
        json.member("self_weight", row.self.weight);
        json.member("samples", row.total.samples);
        json.member("weight", row.total.weight);
        json.end_object();
    });
    json.end_object();
    return json.take() + "\n";
}

// Handles a key. False: the user quits.
bool press(char key, Showing& showing) {
    switch (key) {
        case 'q': return false;
        case ' ': showing.paused = !showing.paused; break;
        case 's': showing.by_total = !showing.by_total; break;
        case 't': showing.tree = !showing.tree; break;
        case 'a': showing.all_time = !showing.all_time; break;
        case 'e': ++showing.event; break;
        case '?':
        case 'h': showing.help = !showing.help; break;
        default: break;
    }
    return true;
}

// Runs until the target exits or the user quits.
Result<int> show_on_screen(Screen& screen, AgentProcess& agent, LiveProfile& profile, const TopOptions& options) {
    Showing showing;
    Clock::time_point drawn{};
    for (bool key_pressed = false;;) {
        const bool fresh = TRY(profile.take());
        const bool due = Clock::now() - drawn >= std::chrono::duration<double>(options.delay_s);
        if (key_pressed || drawn == Clock::time_point{} || (due && fresh && !showing.paused)) {
            const std::size_t rows = std::max(terminal_size().rows, 4U) - 3;
            screen.draw(page_of(profile.store(), showing, options, style_of_output(options.output), rows));
            drawn = Clock::now();
        }
        const auto key = screen.key(poll_interval);
        key_pressed = key.has_value();
        if (key && !press(*key, showing)) return 0;
        if (const auto code = agent.ended()) return *code;
    }
}

// Prints one page per round, one below the other.
Result<int> print_rounds(AgentProcess& agent, LiveProfile& profile, const TopOptions& options) {
    const OutputStyle style = style_of_output(options.output);
    const auto round = std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(options.delay_s));
    Clock::time_point next = Clock::now() + round;
    std::optional<int> code;
    for (std::uint64_t done = 0; !code && (options.rounds == 0 || done < options.rounds);) {
        std::this_thread::sleep_for(poll_interval);
        code = agent.ended();
        TRY(profile.take());
        if (!code && Clock::now() < next) continue;
        next += round;
        ++done;
        // A wrong key is known after the first hits, which say what fields there are.
        if (!options.by.empty() && profile.store().hits().next() != 0) TRY(hits_by_key(profile.store(), {}, options));
        const std::string page = options.output.json ? json_of(profile.store(), options)
                                                     : page_of(profile.store(), {}, options, style, 20) + "\n";
        OutputOptions output = options.output;
        output.no_pager = true;
        TRY(print_paged(page, output));
    }
    return code.value_or(0);
}

Result<int> top(const TopOptions& options) {
    if (!options.agent.command().empty())
        return fail(ErrorCode::invalid,
                    "a command would print over the table: start it elsewhere, and give --pid or --name");
    OpenOptions open = options.open;
    const std::string data_dir = data_dir_of(open.data_dir).value_or(std::string{});
    TRY(server::finish_symbol_options(open.symbols, data_dir));
    symbol::Symbolizer symbolizer(symbol_config(open.symbols));
    const Scratch scratch = TRY(Scratch::create());
    if (!options.by.empty() && !options.agent.gave("--events"))
        return fail(ErrorCode::invalid, "--by needs events whose hits it counts: --events LIST");
    if (!options.by.empty() && options.agent.gave("--trace"))
        return fail(ErrorCode::invalid, "--by counts hits of --events; leave out --trace");
    if (options.by.empty() && !options.value.empty()) return fail(ErrorCode::invalid, "--value needs --by KEY");
    std::vector<std::string> arguments = TRY(options.agent.arguments());
    if (!options.by.empty()) std::ranges::replace(arguments, std::string("--events"), std::string("--trace"));
    arguments.insert(arguments.end(), {"--output", scratch.session_file(), "--interval", "250", "--metrics", "off"});
    if (!options.agent.gave("--duration")) arguments.insert(arguments.end(), {"--duration", until_stopped});
    LiveProfile profile(scratch.session_file(), symbolizer);
    if (options.output.json || !output_is_terminal() || options.rounds != 0) {
        AgentProcess agent = TRY(AgentProcess::start(arguments));
        return print_rounds(agent, profile, options);
    }
    int code = 0;
    AgentProcess agent = TRY(AgentProcess::start(arguments, AgentProcess::Output::quiet));
    {
        Screen screen = TRY(Screen::open());
        code = TRY(show_on_screen(screen, agent, profile, options));
    }
    fmt::print(stderr, "{}", agent.words());
    return code;
}

}  // namespace

Action add_top(CLI::App& command) {
    auto options = std::make_shared<TopOptions>();
    options->agent.add(command, AgentOptions::Use::sample);
    command.add_option("--every", options->delay_s, "seconds between updates")
        ->type_name("SECONDS")
        ->capture_default_str()
        ->check(CLI::Range(0.1, 3600.0));
    command.add_option("--window", options->window_s, "show the last N seconds; 0: all")
        ->type_name("SECONDS")
        ->capture_default_str()
        ->check(CLI::Range(0.0, 86400.0));
    command.add_option("-n,--rounds", options->rounds, "print this many tables, then exit")->type_name("N");
    command
        .add_option("--by", options->by, "count hits of the events by a field, or by comm, pid, tid, cpu or function")
        ->type_name("KEY");
    command.add_option("--value", options->value, "the field whose sum, average and percentiles the table has")
        ->type_name("FIELD");
    add_output_options(command, options->output);
    add_open_options(command, options->open);
    return [options] { return top(*options); };
}

}  // namespace flamewire::cli
