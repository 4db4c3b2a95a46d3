#include "cli/open_profile.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <vector>

#include "base/file.h"
#include "cli/terminal.h"
#include "cli/unused_binaries.h"
#include "server/options.h"
#include "server/session/archive.h"
#include "server/session/debug_fetch.h"
#include "server/session/import_file.h"
#include "server/session/label.h"
#include "server/session/side_files.h"
#include "symbol/files/debuginfod.h"

namespace flamewire::cli {
namespace {

namespace fs = std::filesystem;

// Rows are merged only if a session has more than max_rows. Table bytes are nearly unlimited, because this process only
// reads one file.
constexpr server::SessionLimits limits{.store = {.max_rows = 16'000'000, .max_table_bytes = std::size_t{16} << 30}};

Error no_home() { return {.code = ErrorCode::invalid, .message = "there is no home directory: give --data-dir"}; }

// Streams below DATA_DIR/sessions, in the server's layout.
struct Stored {
    std::string id, stream;
    fs::file_time_type written;
};
std::vector<Stored> stored_sessions(const std::string& data_dir) {
    std::vector<Stored> found;
    std::error_code error;
    fs::directory_iterator at(fs::path(data_dir) / "sessions", fs::directory_options::skip_permission_denied, error);
    for (; !error && at != fs::directory_iterator(); at.increment(error)) {
        std::error_code none;
        fs::path stream = at->path();
        if (fs::is_directory(stream, none)) stream /= "stream.flw";
        if (stream.extension() != ".flw" || !fs::is_regular_file(stream, none)) continue;
        const auto written = fs::last_write_time(stream, none);
        found.push_back({stream.filename() == "stream.flw" ? at->path().filename().string() : stream.stem().string(),
                         stream.string(), written});
    }
    return found;
}

Result<std::string> keep_input(const Scratch& scratch, Progress& progress) {
    const UniqueFd out(::open(scratch.input_file().c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (!out) return fail_errno("cannot write " + scratch.input_file(), errno);
    std::array<char, 1 << 16> block{};
    for (;;) {
        const ssize_t got = ::read(STDIN_FILENO, block.data(), block.size());
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return fail_errno("cannot read standard input", errno);
        if (got == 0) return scratch.input_file();
        TRY(write_all(out.get(), as_bytes_view(std::string_view(block.data(), static_cast<std::size_t>(got)))));
        progress.show("Reading");
    }
}

// Copies the stream and the files that belong to it.
Result<bool> copy_session(const std::string& from, const std::string& to) {
    std::error_code error;
    fs::copy_file(from, to, error);
    if (error) return fail_errno("cannot write " + to, error.value());
    for (const std::string_view name : server::portable_files) {
        const std::string side = server::side_file(from, name);
        if (!fs::exists(side, error)) continue;
        fs::copy_file(side, server::side_file(to, name), error);
        if (error) return fail_errno("cannot copy " + side, error.value());
    }
    return true;
}

}  // namespace

void add_open_options(CLI::App& command, OpenOptions& options) {
    command.add_option("--data-dir", options.data_dir, "where sessions are kept (default: the server's)")
        ->type_name("DIR");
    server::add_import_memory(command, options.import_memory);
    server::add_symbol_options(command, options.symbols);
}

Result<std::string> data_dir_of(const std::string& option) {
    const std::string chosen = option.empty() ? server::default_data_dir() : option;
    if (chosen.empty()) return std::unexpected(no_home());
    return fs::absolute(chosen).lexically_normal().string();
}

Result<std::string> find_session(const std::string& file, const std::string& data_dir) {
    std::error_code error;
    if (!file.empty()) {
        if (fs::is_directory(file, error)) {
            const fs::path stream = fs::path(file) / "stream.flw";
            if (fs::is_regular_file(stream, error)) return stream.string();
            return fail(ErrorCode::not_found, fmt::format("{} is not a session: the folder has no stream.flw", file));
        }
        if (fs::exists(file, error)) return file;
    }
    if (data_dir.empty()) return std::unexpected(no_home());
    const std::vector<Stored> sessions = stored_sessions(data_dir);
    const Stored* chosen = nullptr;
    for (const Stored& one : sessions)
        if (file.empty() ? chosen == nullptr || one.written > chosen->written : one.id == file) chosen = &one;
    if (chosen != nullptr) return chosen->stream;
    if (file.empty())
        return fail(ErrorCode::not_found,
                    fmt::format("there is no session in {}: give a FILE, or make one with flamewire record", data_dir));
    return fail(ErrorCode::not_found,
                fmt::format("there is no file {} and no session of that id in {} (flamewire list)", file, data_dir));
}

Result<bool> ask_debuginfod(server::Session& session, symbol::Symbolizer& symbolizer,
                            const server::SettingsValues& symbols, Progress& progress) {
    if (symbols.debuginfod.empty() || session.symbols().missing_debug_info().empty()) return true;
    if (symbols.debuginfod_directory.empty()) return std::unexpected(no_home());
    TRY(symbol::prepare_debuginfod(symbols.debuginfod, symbols.debuginfod_directory, symbols.debuginfod_cache_bytes));
    const auto problems =
        server::fetch_debug_info(session, symbolizer, symbols.debuginfod_directory, symbols.debuginfod_cache_bytes,
                                 [&](const std::string& name, std::uint64_t got, std::uint64_t total) {
                                     progress.show("Fetching debug info of " + name, got, total);
                                 });
    progress.clear();
    for (const std::string& problem : problems) print_error(problem);
    return true;
}

Result<OpenProfile> open_profile(const std::string& file, OpenOptions options, OpenWhere where) {
    Progress progress;
    // Without a home directory there are no ids, but files can still be read.
    const std::string data_dir = data_dir_of(options.data_dir).value_or(std::string{});
    TRY(server::finish_symbol_options(options.symbols, data_dir));
    OpenProfile open;
    open.symbolizer = std::make_unique<symbol::Symbolizer>(symbol_config(options.symbols));
    const symbol::Config config = open.symbolizer->config();

    std::string path;
    if (file == "-") {
        open.scratch = TRY(Scratch::create());
        path = TRY(keep_input(*open.scratch, progress));
    } else {
        path = TRY(find_session(file, data_dir));
    }
    const fs::path shown = fs::absolute(path);
    const std::string id =
        shown.filename() == "stream.flw" ? shown.parent_path().filename().string() : shown.filename().string();
    const auto in_scratch = [&]() -> Result<std::string> {
        if (!open.scratch) open.scratch = TRY(Scratch::create());
        return open.scratch->session_file();
    };
    using Opened = Result<std::shared_ptr<server::Session>>;
    const server::ImportTarget target{
        .scratch_dir = fs::temp_directory_path().string(),
        .symbols = config,
        .create = [&](const wire::RecordingId& recording) -> Opened {
            return server::Session::create(id, TRY(in_scratch()), recording, limits);
        },
        .import_stream = [&]() -> Opened {
            if (where == OpenWhere::in_place) return server::Session::load(id, path, limits);
            const std::string copy = TRY(in_scratch());
            TRY(copy_session(path, copy));
            return server::Session::load(id, copy, limits);
        },
        .import_archive = [&](profile::ImportSource& archive) -> Opened {
            const std::string stream = TRY(in_scratch());
            const std::string name = TRY(server::read_archive(archive, open.scratch->path()));
            return server::Session::load(name.empty() ? id : name, stream, limits);
        },
        .discard = [](const server::Session&) {},
        .progress = [&](std::uint64_t read, std::uint64_t total) { progress.show("Reading " + id, read, total); },
        .memory_bytes = TRY(server::parse_import_memory(options.import_memory)),
    };
    open.session = TRY(server::import_file(path, file == "-" ? "standard input" : id, target));
    if (const auto label = server::read_label(server::side_file(open.session->stream_path(), server::label_name)))
        open.session->status().set_label(*label);
    open.session->symbols().symbolize(*open.symbolizer, [&] { progress.show("Naming addresses"); });
    progress.clear();
    for (const std::string& sentence : open.session->read(
             [&](const profile::Store& store) { return unused_binaries(store.modules(), config.binaries); }))
        print_error(sentence);
    TRY(ask_debuginfod(*open.session, *open.symbolizer, options.symbols, progress));
    return open;
}

}  // namespace flamewire::cli
