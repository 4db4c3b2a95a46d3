// FILE of the command line: a session or anything that can be imported, opened for reading, with its names.
#pragma once

#include <CLI/App.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "cli/progress.h"
#include "cli/scratch.h"
#include "server/http/settings.h"
#include "server/session/session.h"
#include "symbol/symbolizer.h"

namespace flamewire::cli {

struct OpenOptions {
    server::SettingsValues symbols;  // where files and sources are looked for
    std::string data_dir;            // whose sessions are meant by ids; empty: the server's default
    std::string import_memory;       // SIZE of --import-memory; empty: the default
};
// --binary and its like, --data-dir and --import-memory.
void add_open_options(CLI::App& command, OpenOptions& options);

// The session and what is needed to go on asking for names.
struct OpenProfile {
    std::optional<Scratch> scratch;  // of an import
    std::shared_ptr<server::Session> session;
    std::unique_ptr<symbol::Symbolizer> symbolizer;
};

// Where the stream of the session that is opened stands: where it is, or in the scratch folder, where it may be
// written to.
enum class OpenWhere : std::uint8_t { in_place, in_scratch };

// `file`: a path, "-" for standard input, or the id of a session below the data directory; empty: the newest one.
// Blocking, with a progress bar. Losses and damage are in the session's notices.
Result<OpenProfile> open_profile(const std::string& file, OpenOptions options, OpenWhere where = OpenWhere::in_place);

// What the session lacks, from the servers of --debuginfod, if any; what they have not is said on standard error. Blocking.
Result<bool> ask_debuginfod(server::Session& session, symbol::Symbolizer& symbolizer,
                            const server::SettingsValues& symbols, Progress& progress);

// Path of the session's stream: of an id, a folder, a file, or the newest ("").
Result<std::string> find_session(const std::string& file, const std::string& data_dir);

// As the options say, or the server's default, absolute.
Result<std::string> data_dir_of(const std::string& option);

}  // namespace flamewire::cli
