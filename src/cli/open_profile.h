// Opens FILE of the command line for reading and symbolizes it: a session, or any file that can be imported.
#pragma once

#include <CLI/App.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "cli/progress.h"
#include "cli/scratch.h"
#include "server/session/session.h"
#include "server/source/settings.h"
#include "symbol/symbolizer.h"

namespace flamewire::cli {

struct OpenOptions {
    server::SettingsValues symbols;  // where to find files and sources
    std::string data_dir;            // where session ids are looked up; empty: the server's default
    std::string import_memory;       // SIZE of --import-memory; empty: default
};
// Adds the symbol options (--binary and others), --data-dir and --import-memory.
void add_open_options(CLI::App& command, OpenOptions& options);

// The session and what later symbolization needs.
struct OpenProfile {
    std::optional<Scratch> scratch;  // for imports
    std::shared_ptr<server::Session> session;
    std::unique_ptr<symbol::Symbolizer> symbolizer;
};

// Location of the opened session's stream: its original place, or a copy in the scratch folder, which is writable.
enum class OpenWhere : std::uint8_t { in_place, in_scratch };

// `file`: a path, "-" for standard input, or the id of a session below the data directory; empty: the newest session.
// Blocks and shows a progress bar. Losses and damage are in the session's notices.
Result<OpenProfile> open_profile(const std::string& file, OpenOptions options, OpenWhere where = OpenWhere::in_place);

// Fetches missing debug info from the servers of --debuginfod, if any. Failures are reported on standard error. Blocks.
Result<bool> ask_debuginfod(server::Session& session, symbol::Symbolizer& symbolizer,
                            const server::SettingsValues& symbols, Progress& progress);

// Path of a session's stream, given its id, its folder or its file. "": the newest session.
Result<std::string> find_session(const std::string& file, const std::string& data_dir);

// The absolute path of the data directory: the option, or the server's default.
Result<std::string> data_dir_of(const std::string& option);

}  // namespace flamewire::cli
