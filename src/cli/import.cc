#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <vector>

#include "base/decimal.h"
#include "base/file.h"
#include "base/json_writer.h"
#include "base/utf8.h"
#include "cli/command.h"
#include "cli/numbers.h"
#include "cli/open_profile.h"
#include "cli/progress.h"
#include "cli/terminal.h"
#include "server/options.h"
#include "server/session/catalog.h"
#include "server/session/import_file.h"

namespace flamewire::cli {
namespace {

namespace fs = std::filesystem;

struct ImportOptions {
    std::vector<std::string> files;
    OpenOptions open;
    bool json = false;
};

struct Imported {
    std::string name, id;
    std::uint64_t samples = 0;
    std::vector<wire::Notice> notices;
};

Result<Imported> import_one(const std::string& file, server::Catalog& catalog, symbol::Symbolizer& symbolizer,
                            const server::SettingsValues& symbols, std::uint64_t memory_bytes) {
    Progress progress;
    const std::string name = fs::path(file).filename().string();
    const symbol::Config config = symbolizer.config();
    using Made = Result<std::shared_ptr<server::Session>>;
    const server::ImportTarget target{
        .scratch_dir = catalog.data_dir(),
        .symbols = config,
        .create = [&](const wire::RecordingId& recording) { return catalog.create(recording, name); },
        .import_stream = [&]() -> Made { return catalog.get(TRY(catalog.import_stream(file, name))); },
        .import_archive = [&](profile::ImportSource& archive) -> Made {
            return catalog.get(TRY(catalog.import_archive(archive, name)));
        },
        .discard = [&](const server::Session& session) { (void)catalog.remove(session.id()); },
        .progress = [&](std::uint64_t read, std::uint64_t total) { progress.show("Importing " + name, read, total); },
        .memory_bytes = memory_bytes,
    };
    const auto session = TRY(server::import_file(file, name, target));
    session->symbols().symbolize(symbolizer, [&] { progress.show("Naming addresses"); });
    TRY(ask_debuginfod(*session, symbolizer, symbols, progress));
    catalog.save(*session);
    const server::SessionInfo info = session->info();
    return Imported{name, session->id(), info.samples, info.notices};
}

Result<int> import_all(const ImportOptions& options) {
    OpenOptions open = options.open;
    const std::string data_dir = TRY(data_dir_of(open.data_dir));
    TRY(server::finish_symbol_options(open.symbols, data_dir));
    const std::uint64_t memory_bytes = TRY(server::parse_import_memory(open.import_memory));
    if (auto made = make_private_folders(data_dir + "/sessions"); !made) {
        made.error().message += " (--data-dir names another)";
        return std::unexpected(std::move(made).error());
    }
    symbol::Symbolizer symbolizer(symbol_config(open.symbols));
    // A server can use the folder at the same time: it detects new sessions there.
    const auto catalog = server::Catalog::open_read_only(data_dir, {});
    JsonWriter json;
    json.array();
    int code = 0;
    for (const std::string& file : options.files) {
        const auto done = import_one(file, *catalog, symbolizer, open.symbols, memory_bytes);
        if (!done) {
            const std::string& why = done.error().message;
            // Some messages already begin with the file's name.
            const std::string name = fs::path(file).filename().string();
            const bool is_named = why.starts_with(file) || why.starts_with(name + " ") || why.starts_with(name + ":") ||
                                  why.starts_with("cannot open " + file);
            print_error(fmt::format("flamewire import: {}{}", is_named ? "" : file + ": ", why));
            code = 1;
            continue;
        }
        if (options.json) {
            json.object();
            json.member("name", done->name);
            json.member("id", done->id);
            json.member("samples", done->samples);
            json.list("notices", done->notices, [&](const wire::Notice& notice) { json.text(notice.text); });
            json.end_object();
            continue;
        }
        fmt::print("{}: {} samples, session {}\n", printable(done->name), with_commas(done->samples), done->id);
        for (const wire::Notice& notice : done->notices) fmt::print("  {}\n", printable(notice.text));
    }
    json.end_array();
    if (options.json) fmt::print("{}\n", json.take());
    return code;
}

}  // namespace

Action add_import(CLI::App& command) {
    auto options = std::make_shared<ImportOptions>();
    command
        .add_option("FILE", options->files,
                    "sessions, archives, perf.data, perf script text, folded stacks, pprof, speedscope, Firefox or "
                    "Chrome profiles")
        ->required();
    command.add_flag("--json", options->json, "print JSON for programs");
    add_open_options(command, options->open);
    return [options] { return import_all(*options); };
}

}  // namespace flamewire::cli
