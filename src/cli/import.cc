#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <vector>

#include "cli/command.h"
#include "cli/numbers.h"
#include "cli/open_profile.h"
#include "cli/progress.h"
#include "cli/terminal.h"
#include "server/options.h"
#include "server/session/catalog.h"
#include "server/session/import_file.h"
#include "server/session/json_writer.h"

namespace flamewire::cli {
namespace {

namespace fs = std::filesystem;

struct Options {
    std::vector<std::string> files;
    OpenOptions open;
    bool json = false;
};

struct Imported {
    std::string name, path;
    std::uint64_t samples = 0;
    std::vector<wire::Notice> notices;
};

// A file of its own among the sessions: a server that has the folder finds it there.
Result<std::string> new_session_path(const std::string& data_dir, const std::string& name) {
    const fs::path folder = fs::path(data_dir) / "sessions";
    std::error_code error;
    fs::create_directories(folder, error);
    if (error)
        return fail_errno(fmt::format("cannot create {} (--data-dir names another)", folder.string()), error.value());
    const std::string id = server::session_word(fs::path(name).stem().string());
    fs::path path = folder / (id + ".flw");
    for (int attempt = 2; fs::exists(path, error); ++attempt) path = folder / fmt::format("{}_{}.flw", id, attempt);
    return path.string();
}

Result<Imported> import_one(const std::string& file, const std::string& data_dir, const symbol::Config& config) {
    Progress progress;
    const std::string name = fs::path(file).filename().string();
    const std::string path = TRY(new_session_path(data_dir, name)), part = path + ".part";
    std::error_code ignored;
    fs::remove(part, ignored);
    const server::ImportPlace place{
        .scratch_dir = data_dir,
        .symbols = config,
        .create =
            [&](const wire::RecordingId& recording) { return server::Session::create(name, part, recording, {}); },
        .adopt = [&]() -> Result<std::shared_ptr<server::Session>> {
            std::error_code error;
            fs::copy_file(file, part, error);
            if (error) return fail_errno("cannot write " + part, error.value());
            return server::Session::load(name, part, {});
        },
        .discard = [](const server::Session&) {},
        .progress = [&](std::uint64_t read, std::uint64_t total) { progress.show("Importing " + name, read, total); },
    };
    const auto session = server::import_file(file, name, place);
    std::error_code error;
    if (session) fs::rename(part, path, error);
    if (!session || error) {
        fs::remove(part, ignored);
        if (!session) return std::unexpected(session.error());
        return fail_errno("cannot write " + path, error.value());
    }
    const server::SessionInfo info = (*session)->info();
    return Imported{name, path, info.samples, info.notices};
}

Result<int> import_all(const Options& options) {
    OpenOptions open = options.open;
    const std::string data_dir = TRY(data_dir_of(open.data_dir));
    TRY(server::finish_symbol_options(open.symbols, data_dir));
    const symbol::Config config = symbol_config(open.symbols);
    server::JsonWriter json;
    json.array();
    int code = 0;
    for (const std::string& file : options.files) {
        const auto done = import_one(file, data_dir, config);
        if (!done) {
            fmt::print(stderr, "flamewire import: {}\n", done.error().message);
            code = 1;
            continue;
        }
        if (options.json) {
            json.object();
            json.member("name", done->name);
            json.member("file", done->path);
            json.member("samples", done->samples);
            json.list("notices", done->notices, [&](const wire::Notice& notice) { json.text(notice.text); });
            json.end_object();
            continue;
        }
        fmt::print("{}: {} samples, session {}\n", done->name, with_commas(done->samples), done->path);
        for (const wire::Notice& notice : done->notices) fmt::print("  {}\n", notice.text);
    }
    json.end_array();
    if (options.json) fmt::print("{}\n", json.take());
    return code;
}

}  // namespace

Action add_import(CLI::App& command) {
    auto options = std::make_shared<Options>();
    command
        .add_option("FILE", options->files,
                    "perf.data, perf script text, folded stacks, pprof, speedscope, Firefox or Chrome profiles")
        ->required();
    command.add_flag("--json", options->json, "print JSON for programs");
    add_open_options(command, options->open);
    return [options] { return import_all(*options); };
}

}  // namespace flamewire::cli
