#include "agent/control/pairing.h"

#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "agent/log.h"
#include "base/file.h"
#include "secure/hide_argument.h"

namespace flamewire::agent {
namespace {

// Returns the code from the environment and removes it there, so that /proc and a launched command do not show it.
std::string take_from_environment() {
    char* value = std::getenv(pairing_variable);
    if (value == nullptr) return {};
    std::string code = value;
    std::memset(value, 'x', code.size());
    ::unsetenv(pairing_variable);
    return code;
}

Result<Pairing> make_one(const Options& options) {
    Pairing made;
    made.key = TRY(secure::make_pairing_key());
    const std::string code = secure::pairing_code(*made.key);
    if (options.pair_file.empty()) {
        if (std::getenv("JOURNAL_STREAM") != nullptr && ::isatty(STDOUT_FILENO) == 0)
            return fail(ErrorCode::invalid,
                        "a pairing code must not go to the journal: name a file for it with --pair-file FILE");
        made.code_to_print = code;
        return made;
    }
    TRY(replace_file(options.pair_file, as_bytes_view(code + "\n"), Durable::yes));
    log("a new pairing code is in {}: the server needs it", options.pair_file);
    return made;
}

}  // namespace

Result<Pairing> find_pairing(const Options& options, char** argv) {
    secure::hide_argument(argv, "--pair");
    const std::string from_environment = take_from_environment();
    if (options.mode == Mode::output) return Pairing{};
    if (!options.pair_file.empty()) {
        auto read = secure::read_pairing_file(options.pair_file);
        if (read) return Pairing{*std::move(read), {}};
        if (options.mode != Mode::listen || read.error().code != ErrorCode::not_found)
            return std::unexpected(std::move(read).error());
    }
    const bool given = !options.pair.empty();
    const std::string& code = given ? options.pair : from_environment;
    if (!code.empty() && options.pair_file.empty()) {
        auto key = secure::parse_pairing_code(code);
        if (!key)
            return fail(ErrorCode::invalid,
                        std::string(given ? "--pair" : pairing_variable) + ": " + key.error().message);
        return Pairing{*std::move(key), {}};
    }
    if (options.mode == Mode::listen) return make_one(options);
    return Pairing{};
}

}  // namespace flamewire::agent
