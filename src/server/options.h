// The command line of flamewire-server as a value.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "server/session/label.h"
#include "server/session/prune.h"
#include "server/source/settings.h"

namespace CLI {  // CLI11's name. NOLINT(readability-identifier-naming)
class App;
}

namespace flamewire::server {

struct AgentAddress {
    std::string host;
    std::uint16_t port = 9999;
    bool operator==(const AgentAddress&) const = default;
};

// Changes or lists the pairing keys of a data directory. The program then exits.
struct PairingAction {
    enum class Kind : std::uint8_t { none, list, make, renew, withdraw, put };
    Kind kind = Kind::none;
    std::string argument;  // renew, withdraw: an id; put: "host:port"; the code comes from stdin
};

struct Options {
    std::string bind = "0.0.0.0", http_bind = "127.0.0.1";
    std::uint16_t port = 9999, http_port = 8080;
    std::vector<std::string> http_names;  // host names of the page, besides localhost and addresses
    std::string http_prefix = "/";        // "/" or "/name/"
    std::string http_token_file;          // empty: the one in the data directory
    bool http_open = false;               // the page requires no token; loopback only
    std::string http_cert, http_key;      // PEM files; empty: no TLS
    std::string web_dir;                  // serve the page from here, for development; empty: from the executable
    std::string data_dir;
    SettingsValues settings;
    std::vector<std::string> browse_roots;  // folders that the page may list
    std::size_t max_samples = 500'000;
    std::uint64_t table_memory = std::uint64_t{1} << 30, session_size = std::uint64_t{32} << 30;  // bytes per session
    Tags tags;                                                                                    // of new sessions
    RetentionRules keep;  // which old sessions are deleted
    std::vector<AgentAddress> agents;
    bool insecure = false;                                 // also accept agents without encryption and pairing code
    PairingAction pairing;                                 // runs instead of the server
    std::vector<std::string> imports;                      // files
    std::uint64_t import_memory = std::uint64_t{1} << 30;  // limit for each import, in bytes
    bool fetch_modules = true;                             // fetch files that this machine lacks from the agent
    std::uint64_t fetch_cap_mib = 64;                      // per file
    bool accept_perflens = false;                          // also accept agents of PerfLens
    std::string perflens_token;                            // their pairing code
    bool verbose = false;
    std::vector<std::string> remarks;  // one line each, about options that are accepted but have no effect
};

struct ParsedOptions {
    Options options;
    std::string message;  // not empty: print it and exit with `exit_code` (help, version, usage error)
    int exit_code = 0;
};

ParsedOptions parse_options(int argc, const char* const* argv);

// The server's options as part of a command line. Call add() before parsing and finish() afterwards.
class ServerCommandLine {
public:
    // `bind`: default address for agents.
    explicit ServerCommandLine(std::string bind = "0.0.0.0") { options_.bind = std::move(bind); }
    void add(CLI::App& app);
    // invalid, not_found: the message is one sentence that names the option.
    Result<Options> finish();

private:
    void add_addresses(CLI::App& app);  // where agents and browsers connect
    void add_sessions(CLI::App& app);   // their limits, and which are kept

    Options options_;
    std::vector<std::string> agents_, tags_;
    std::string http_prefix_, keep_size_, table_memory_, session_size_, import_memory_, addr2line_, readelf_,
        fetch_modules_ = "on";
};

// The options for finding symbols and sources (for example, --binary). CLI11 writes to `settings` while parsing, so it
// must outlive `app`.
void add_symbol_options(CLI::App& app, SettingsValues& settings);
// --import-memory. parse_import_memory() checks the text.
void add_import_memory(CLI::App& app, std::string& size);
// `size`: as given, "" for the default. invalid: the message is one sentence that names the option.
Result<std::uint64_t> parse_import_memory(const std::string& size);
// Checks the settings and adds what follows from them and from the data directory ("": none). Returns remarks to print.
Result<std::vector<std::string>> finish_symbol_options(SettingsValues& settings, const std::string& data_dir);

// Whether only this machine can reach a listener on this IP address.
bool is_loopback(const std::string& address);
// "board", "board:9999", "[::1]:9999".
Result<AgentAddress> parse_agent_address(const std::string& text);
// XDG_DATA_HOME/flamewire, or ~/.local/share/flamewire if it is not set.
std::string default_data_dir();

}  // namespace flamewire::server
