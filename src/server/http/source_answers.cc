// Annotated source: the local file that the debug info names, with the weight of each line.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <unordered_map>

#include "profile/query/code_heat.h"
#include "profile/query/query.h"
#include "server/http/flamegraph.h"
#include "server/http/parameters.h"
#include "server/http/profile_answers.h"
#include "server/session/source_bundle.h"

namespace flamewire::server {
namespace {

constexpr std::uint64_t default_lines = 20'000;

// `named`: the profile names this file. Otherwise the answer must not reveal which files this machine has.
Answer not_found_answer(std::string_view file, const SourceMatch& match, bool named) {
    const bool outside = named && !match.outside.empty();
    JsonWriter json;
    json.object();
    json.key("error");
    json.object();
    json.member("code", "not_found");
    json.member("message", outside
                               ? fmt::format("{} is outside of the folders whose sources are shown: start the server "
                                             "with --source-dir {}",
                                             file, match.outside)
                               : fmt::format("{} is not found on this machine", file));
    json.texts("tried", match.tried);
    json.member("suggestion", outside ? std::string() : match.suggestion);
    json.end_object();
    json.end_object();
    Answer answer = json_answer(json.take());
    answer.status = 404;
    return answer;
}

std::vector<std::string_view> split_lines(std::string_view text) {
    std::vector<std::string_view> lines;
    while (!text.empty()) {
        const std::size_t end = text.find('\n');
        std::string_view line = text.substr(0, end);
        if (line.ends_with('\r')) line.remove_suffix(1);
        lines.push_back(line);
        text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
    }
    return lines;
}

struct Heat {
    std::vector<profile::LineRow> rows;
    std::unordered_map<std::uint32_t, const profile::LineRow*> by_line;
    std::uint32_t hottest = 0;
};

Heat heat_of(const profile::Store& store, const views::View& view, std::string_view file) {
    Heat heat;
    heat.rows = profile::line_heat(store, view.filter, file);
    const profile::LineRow* hottest = nullptr;
    for (const profile::LineRow& row : heat.rows) {
        heat.by_line[row.line] = &row;
        if (row.line == 0) continue;
        if (hottest == nullptr || row.self.weight > hottest->self.weight ||
            (row.self.weight == hottest->self.weight && row.total.weight > hottest->total.weight))
            hottest = &row;
    }
    if (hottest != nullptr) heat.hottest = hottest->line;
    return heat;
}

// First line (from 1) and number of lines to show.
std::pair<std::uint64_t, std::uint64_t> shown_range(std::optional<std::uint64_t> first,
                                                    std::optional<std::uint64_t> count, std::uint64_t lines,
                                                    std::uint64_t hottest) {
    const std::uint64_t wanted = std::min(count.value_or(default_lines), default_lines);
    std::uint64_t begin = first.value_or(hottest > wanted / 2 && lines > wanted ? hottest - wanted / 2 : 1);
    if (!first && lines > wanted) begin = std::min(begin, lines - wanted + 1);
    begin = std::max<std::uint64_t>(begin, 1);
    return {begin, begin > lines ? 0 : std::min(wanted, lines - begin + 1)};
}

void write_line(JsonWriter& json, std::uint32_t number, std::string_view source, const Heat& heat,
                const profile::Weight& whole) {
    const auto at = heat.by_line.find(number);
    const profile::LineRow row = at == heat.by_line.end() ? profile::LineRow{} : *at->second;
    json.object();
    json.member("line", number);
    json.member("source", source);
    json.member("samples", row.self.samples);
    json.member("weight", row.self.weight);
    json.member("total", row.total.weight);
    json.member("total_samples", row.total.samples);
    json.member("percent", views::percent(row.self.weight, whole.weight));
    json.member("total_percent", views::percent(row.total.weight, whole.weight));
    json.end_object();
}

void write_inlined(JsonWriter& json, const profile::Store& store, const std::vector<profile::InlineRow>& rows,
                   const profile::Weight& whole) {
    json.list("inlined", rows, [&](const profile::InlineRow& row) {
        json.object();
        json.member("line", row.line);
        json.member("name", store.string(row.function.name));
        json.member("module", store.string(row.function.module));
        json.member("file", store.string(row.file));
        json.member("function_line", row.function_line);
        json.member("total", row.total.weight);
        json.member("total_samples", row.total.samples);
        json.member("total_percent", views::percent(row.total.weight, whole.weight));
        json.end_object();
    });
}

// The file on this machine, otherwise the session's stored copy.
Result<std::string> text_of(const Session& session, const std::string& file, SourceMatch& match) {
    if (match.found) return read_source(match.path);
    auto kept = find_bundled_source(session.stream_path(), file);
    if (!kept) return fail(ErrorCode::not_found, file + " is not found");
    match.found = true;
    match.path = std::move(kept->path);
    match.note = "as it was kept with the session; this machine does not have it";
    return std::move(kept->text);
}

bool names(const Session& session, const std::string& file) {
    return session.read([&](const profile::Store& store) { return !profile::line_heat(store, {}, file).empty(); });
}

// The builds that have lines in the file.
std::vector<std::string> builds_with(const Session& session, const std::string& file) {
    return session.read([&](const profile::Store& store) {
        std::vector<std::string> builds;
        for (const profile::CodePlace& place : profile::line_places(store, file, 1)) {
            const std::string& build_id = store.modules()[place.module].identity.build_id;
            if (!build_id.empty() && std::ranges::find(builds, build_id) == builds.end()) builds.push_back(build_id);
        }
        return builds;
    });
}

// The file from a debuginfod server. Otherwise `match` describes what happened.
Result<std::string> fetched_text(const std::shared_ptr<Session>& session, const std::string& file, SourceMatch& match,
                                 DebugFetch& fetch) {
    const std::vector<std::string> builds = builds_with(*session, file);
    if (builds.empty() || !file.starts_with('/')) return fail(ErrorCode::not_found, file + " is not found");
    auto path = fetch.source(session, builds, file);
    if (!path) {
        match.tried.push_back(fmt::format("debuginfod: {}", path.error().message));
        return std::unexpected(std::move(path).error());
    }
    match.found = true;
    match.path = *std::move(path);
    match.note = "as a debuginfod server sent it; this machine does not have it";
    return read_source(match.path);
}

Result<std::optional<std::uint64_t>> optional_integer(const Request& request, std::string_view name) {
    const auto text = request.parameter(name);
    if (text.empty()) return std::optional<std::uint64_t>{};
    return std::optional<std::uint64_t>{TRY(parse_integer(name, text))};
}

}  // namespace

Answer source_answer(const std::shared_ptr<Session>& shared, const Request& request, SourceLookup& sources,
                     DebugFetch* fetch) {
    const Session& session = *shared;
    const std::string file(request.parameter("file"));
    if (file.empty()) return error_answer(400, "validation", "file is required");
    const auto parameters = parse_view(request);
    if (!parameters) return error_answer(parameters.error());
    const auto first = optional_integer(request, "first"), count = optional_integer(request, "count");
    if (!first) return error_answer(first.error());
    if (!count) return error_answer(count.error());

    // Read files before locking the store, so that a slow disk blocks no other request.
    SourceMatch match = sources.find(file);
    auto text = text_of(session, file, match);
    if (!text && !match.found && fetch != nullptr) text = fetched_text(shared, file, match, *fetch);
    if (!text && !match.found) return not_found_answer(file, match, !match.outside.empty() && names(session, file));
    if (!text) return error_answer(text.error());
    const std::vector<std::string_view> lines = split_lines(*text);

    const std::uint64_t start_ns = session.status().start_ns();
    return session.read([&](const profile::Store& store) -> Answer {
        const auto view = resolve_view(*parameters, store, start_ns);
        if (!view) return error_answer(view.error());
        const Heat heat = heat_of(store, *view, file);
        const profile::Weight total = profile::total_of(store, view->filter);
        const auto [begin, shown] = shown_range(*first, *count, lines.size(), heat.hottest);
        std::string note = match.note;
        if (heat.hottest > lines.size())
            note += fmt::format("{}the profile names line {}, but the file has {} lines: it is of another version",
                                note.empty() ? "" : "; ", heat.hottest, lines.size());
        JsonWriter json;
        json.object();
        json.member("file", file);
        json.member("resolved", match.path);
        json.member("session", session.id());
        json.member("event", view->event_name);
        json.member("unit", view->unit);
        write_weight(json, "total", total);
        json.key("lines");
        json.array();
        for (std::uint64_t i = 0; i < shown; ++i)
            write_line(json, static_cast<std::uint32_t>(begin + i), lines[begin + i - 1], heat, total);
        json.end_array();
        write_inlined(json, store, profile::inlined_at(store, view->filter, file), total);
        json.member("first_line", begin);
        json.member("line_count", lines.size());
        json.member("hottest", heat.hottest);
        json.member("note", note);
        json.end_object();
        return json_answer(json.take());
    });
}

}  // namespace flamewire::server
