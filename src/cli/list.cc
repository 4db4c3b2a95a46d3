#include <CLI/CLI.hpp>
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <memory>

#include "base/decimal.h"
#include "base/utf8.h"
#include "cli/command.h"
#include "cli/numbers.h"
#include "cli/open_profile.h"
#include "cli/terminal.h"
#include "server/session/catalog.h"
#include "server/session/file_damage.h"

namespace flamewire::cli {
namespace {

struct ListOptions {
    std::string words, data_dir;
    std::uint64_t most = 100;
    OutputOptions output;
};

std::string row(const server::SessionInfo& info) {
    const std::time_t started = info.started_ns / 1'000'000'000;
    std::tm local{};
    localtime_r(&started, &local);
    std::string label = info.label.name;
    for (const auto& [key, value] : info.label.tags)
        label += fmt::format("{}{}={}", label.empty() ? "" : " ", key, value);
    std::string text = fmt::format("{:%Y-%m-%d %H:%M}  {:>8}  {:>12}  {:>9}  {}{}{}\n", local,
                                   human_weight(info.duration_ms * 1e6, "ns"), with_commas(info.samples),
                                   human_weight(static_cast<double>(info.size_bytes), "bytes"), info.id,
                                   label.empty() ? "" : "  ", printable(label));
    for (const wire::Notice& notice : info.notices)
        if (server::is_damage_notice(notice)) text += fmt::format("#   {}\n", printable(notice.text));
    return text;
}

Result<int> list(const ListOptions& options) {
    const std::string data_dir = TRY(data_dir_of(options.data_dir));
    const auto catalog = server::Catalog::open_read_only(data_dir, {});
    const std::vector<server::SessionInfo> sessions =
        catalog->list().search({.words = options.words, .limit = options.most}).sessions;
    if (options.output.json) {
        JsonWriter json;
        json.object();
        json.list("sessions", sessions, [&](const server::SessionInfo& info) { write_session(json, info); });
        json.list("unreadable", catalog->list().unreadable(),
                  [&](const std::string& sentence) { json.text(sentence); });
        json.end_object();
        return print_paged(json.take() + "\n", options.output);
    }
    std::string text = sessions.empty() ? fmt::format("# no sessions in {}\n", data_dir)
                                        : "# started          lasted       samples       size  id\n";
    for (const server::SessionInfo& info : sessions) text += row(info);
    for (const std::string& sentence : catalog->list().unreadable()) text += fmt::format("# {}\n", printable(sentence));
    return print_paged(text, options.output);
}

}  // namespace

Action add_list(CLI::App& command) {
    auto options = std::make_shared<ListOptions>();
    command.add_option("WORDS", options->words,
                       "only sessions with all of these words in name, target, host, tags or events");
    command.add_option("-n,--limit", options->most, "sessions to show at most")->type_name("N")->capture_default_str();
    command.add_option("--data-dir", options->data_dir, "where sessions are kept (default: the server's)")
        ->type_name("DIR");
    add_output_options(command, options->output);
    return [options] { return list(*options); };
}

}  // namespace flamewire::cli
