#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <memory>
#include <thread>
#include <utility>

#include "base/file.h"
#include "base/json_writer.h"
#include "cli/agent_process.h"
#include "cli/command.h"
#include "cli/hit_text.h"
#include "cli/live_profile.h"
#include "cli/open_profile.h"
#include "cli/terminal.h"
#include "server/options.h"

namespace flamewire::cli {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds poll_interval{50};
constexpr std::size_t all_hits = 1'000'000'000;

struct TraceOptions {
    AgentOptions agent;
    OpenOptions open;
    OutputOptions output;
    std::string file, filter, by, value;
    std::uint64_t most_hits = 0;  // 0: all
    std::size_t frames = 0;
    bool distribution = false;
};

std::string one_hit(const profile::Store& store, const views::HitValues& values, const views::HitRef& ref,
                    std::uint64_t origin_ns, const TraceOptions& options) {
    return options.output.json ? hit_json(store, values, ref, origin_ns, options.frames)
                               : hit_text(store, values, ref, origin_ns, options.frames);
}

Result<std::string> table(const profile::Store& store, const TraceOptions& options) {
    const views::HitValues values(store);
    const views::HitTable table = TRY(views::hit_table(store, values, {}, options.filter, options.by, options.value));
    if (options.output.json) {
        JsonWriter json;
        json.object();
        json.member("by", options.by);
        json.member("value", options.value);
        views::write_json(json, table, !options.value.empty());
        json.end_object();
        return json.take() + "\n";
    }
    return hit_table_text(table, options.by, options.value, static_cast<std::size_t>(options.most_hits),
                          options.distribution, style_of_output(options.output));
}

// What is not in the list. `removed`: hits that the store no longer has.
std::string missing(const profile::Store& store, std::uint64_t removed) {
    const profile::HitHistory& hits = store.hits();
    std::string text;
    if (removed != 0)
        text += fmt::format("# the oldest {} hits are not shown, because a profile keeps {} at most\n", removed,
                            profile::HitHistory::default_hits);
    if (hits.dropped() != 0)
        text += fmt::format("# {} hits came without their values: too many at once\n", hits.dropped());
    return text;
}

std::uint64_t removed_from(const profile::Store& store) { return store.hits().next() - store.hits().size(); }

Result<int> trace_file(const TraceOptions& options) {
    const OpenProfile open = TRY(open_profile(options.file, options.open));
    const std::uint64_t origin_ns = open.session->status().start_ns();
    const auto text = open.session->read([&](const profile::Store& store) -> Result<std::string> {
        if (store.hits().next() == 0)
            return fail(ErrorCode::not_found, "this profile has no traced events; record with --trace LIST");
        if (!options.by.empty())
            return TRY(table(store, options)) + (options.output.json ? "" : missing(store, removed_from(store)));
        const views::HitValues values(store);
        const std::size_t limit = options.most_hits == 0 ? all_hits : static_cast<std::size_t>(options.most_hits);
        const views::HitList list =
            TRY(views::list_hits(store, values, {}, {.filter = options.filter, .limit = limit, .from = {}}));
        std::string lines = options.output.json ? std::string() : missing(store, removed_from(store));
        for (const views::HitRef& ref : list.hits) lines += one_hit(store, values, ref, origin_ns, options);
        return lines;
    });
    if (!text) return std::unexpected(text.error());
    return print_paged(*text, options.output);
}

// Prints hits as they come. True: as many as wanted were printed, or nobody reads them.
class LivePrinter {
public:
    explicit LivePrinter(const TraceOptions& options) : options_(options) {}

    Result<bool> print_new(const profile::Store& store) {
        if (store.hits().next() == next_) return false;
        const views::HitValues values(store);
        const views::HitList list =
            TRY(views::list_hits(store, values, {}, {.filter = options_.filter, .limit = all_hits, .from = next_}));
        const std::uint64_t before = std::exchange(next_, store.hits().next());
        if (origin_ns_ == 0 && store.recording()) origin_ns_ = store.recording()->start_ns;
        std::string text;
        for (const views::HitRef& ref : list.hits) {
            if (options_.most_hits != 0 && printed_ == options_.most_hits) break;
            text += one_hit(store, values, ref, origin_ns_, options_);
            ++printed_;
        }
        if (!store.hits().chunks().empty())
            skipped_ += store.hits().chunks().front().first - std::min(store.hits().chunks().front().first, before);
        const auto written = write_all(STDOUT_FILENO, as_bytes_view(text));
        if (!written && written.error().errno_value != EPIPE) return std::unexpected(written.error());
        if (!written) return true;  // the reader has enough
        return options_.most_hits != 0 && printed_ == options_.most_hits;
    }

    // Hits that came and went between two calls.
    [[nodiscard]] std::uint64_t skipped() const { return skipped_; }

private:
    const TraceOptions& options_;
    std::uint64_t next_ = 0, printed_ = 0, skipped_ = 0, origin_ns_ = 0;
};

Result<int> trace_live(const TraceOptions& options) {
    OpenOptions open = options.open;
    const std::string data_dir = data_dir_of(open.data_dir).value_or(std::string{});
    TRY(server::finish_symbol_options(open.symbols, data_dir));
    symbol::Symbolizer symbolizer(symbol_config(open.symbols));
    const Scratch scratch = TRY(Scratch::create());
    std::vector<std::string> arguments = TRY(options.agent.arguments());
    arguments.insert(arguments.end(),
                     {"--output", scratch.session_file(), "--interval", "100", "--metrics", "off", "--stat", "none"});
    if (!options.agent.gave("--duration") && options.agent.command().empty())
        arguments.insert(arguments.end(), {"--duration", until_stopped});
    options.agent.add_command(arguments);
    LiveProfile profile(scratch.session_file(), symbolizer);
    LivePrinter printer(options);
    AgentProcess agent = TRY(AgentProcess::start(arguments));
    const AgentProcess::Forwarding forwarding(agent);
    std::optional<int> code;
    while (!code) {
        std::this_thread::sleep_for(poll_interval);
        code = agent.ended();
        TRY(profile.take());
        if (options.by.empty() && TRY(printer.print_new(profile.store()))) return 0;
    }
    // The agent has printed why it could not record.
    if (*code != 0 && profile.store().hits().next() == 0) return *code;
    if (!options.by.empty()) {
        OutputOptions output = options.output;
        output.no_pager = true;
        const std::string text = TRY(table(profile.store(), options));
        TRY(print_paged(text, output));
    }
    fmt::print(stderr, "{}",
               missing(profile.store(), options.by.empty() ? printer.skipped() : removed_from(profile.store())));
    return *code;
}

Result<int> trace(const TraceOptions& options) {
    if (options.by.empty() && (!options.value.empty() || options.distribution))
        return fail(ErrorCode::invalid, "--value and --distribution need --by KEY");
    if (options.distribution && options.value.empty())
        return fail(ErrorCode::invalid, "--distribution needs --value FIELD");
    if (!options.file.empty()) return trace_file(options);
    if (!options.agent.gave("--trace"))
        return fail(ErrorCode::invalid, "give the events with --events LIST, or a session with --input FILE");
    return trace_live(options);
}

}  // namespace

Action add_trace(CLI::App& command) {
    auto options = std::make_shared<TraceOptions>();
    options->agent.add(command, AgentOptions::Use::trace);
    command.add_option("-i,--input", options->file, "a session that was recorded with --trace, instead of a target")
        ->type_name("FILE");
    command
        .add_option("--only", options->filter, "hits that match these words: NAME=VALUE, NAME>VALUE, NAME~TEXT, TEXT")
        ->type_name("WORDS");
    command.add_option("-n,--limit", options->most_hits, "hits, or keys of the table, to show (default: all)")
        ->type_name("N");
    command.add_option("-s,--stack", options->frames, "functions of each stack to show (0)")
        ->type_name("N")
        ->check(CLI::Range(0, 1'024));
    command.add_option("--by", options->by, "a table by a field, or by comm, pid, tid, cpu, event or function")
        ->type_name("KEY");
    command.add_option("--value", options->value, "the field whose sum, average and percentiles the table has")
        ->type_name("FIELD");
    command.add_flag("--distribution", options->distribution, "also show how the values are distributed");
    add_output_options(command, options->output);
    add_open_options(command, options->open);
    return [options] { return trace(*options); };
}

}  // namespace flamewire::cli
