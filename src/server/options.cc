#include "server/options.h"

#include <CLI/CLI.hpp>
#include <asio/ip/address.hpp>
#include <fmt/format.h>

#include <charconv>
#include <cstdlib>
#include <filesystem>

#include "secure/this_machine.h"
#include "server/source/toolchain.h"
#include "symbol/files/debuginfod.h"

namespace flamewire::server {
namespace {

constexpr std::uint64_t least_size = 64U << 10;

Result<std::uint16_t> parse_port(std::string_view text, unsigned least) {
    unsigned value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size() || value < least || value > 65535)
        return fail(ErrorCode::invalid, fmt::format("{} is not a port", text));
    return static_cast<std::uint16_t>(value);
}

// Default of --browse-root: the folders that the settings name, and the home folder.
std::vector<std::string> default_browse_roots(const SettingsValues& settings) {
    std::vector<std::string> roots{settings.source_dir};
    if (!settings.sysroot.empty()) roots.push_back(settings.sysroot);
    for (const std::string& binary : settings.binaries)
        roots.push_back(std::filesystem::absolute(binary).parent_path().string());
    const char* home = std::getenv("HOME");
    if (home != nullptr && home[0] == '/' && home[1] != '\0') roots.emplace_back(home);
    return roots;
}

Result<std::vector<std::string>> finish_browse_roots(const Options& options) {
    if (options.browse_roots.empty()) return default_browse_roots(options.settings);
    if (options.browse_roots == std::vector<std::string>{"none"}) return std::vector<std::string>{};
    for (const std::string& root : options.browse_roots) {
        std::error_code error;
        if (!std::filesystem::is_directory(root, error))
            return fail(ErrorCode::invalid, fmt::format("--browse-root {} is not a folder", root));
    }
    return options.browse_roots;
}

Result<bool> take_size(std::string_view option, const std::string& text, std::uint64_t& into) {
    if (text.empty()) return true;
    const auto size = parse_size(text);
    if (!size) return fail(ErrorCode::invalid, fmt::format("{}: {}", option, size.error().message));
    if (*size < least_size)
        return fail(ErrorCode::invalid, fmt::format("{} is at least {}K", option, least_size >> 10));
    into = *size;
    return true;
}

Result<bool> finish_keeping(Options& options, const std::vector<std::string>& tags, const std::string& keep_size) {
    for (const std::string& text : tags) {
        auto tag = parse_tag(text);
        if (!tag) return fail(ErrorCode::invalid, fmt::format("--tag {}: {}", text, tag.error().message));
        options.tags[tag->first] = tag->second;
    }
    if (options.tags.size() > max_tags)
        return fail(ErrorCode::invalid, fmt::format("--tag can be given {} times at most", max_tags));
    if (keep_size.empty()) return true;
    const auto size = parse_size(keep_size);
    if (!size) return fail(ErrorCode::invalid, fmt::format("--keep-size: {}", size.error().message));
    options.keep.size_bytes = *size;
    return true;
}

// Without a token the page is open to everybody who can reach it, so only loopback is allowed.
Result<bool> check_http_open(const Options& options) {
    if (!options.http_open) return true;
    if (!options.http_token_file.empty())
        return fail(
            ErrorCode::invalid,
            "--http-open and --http-token-file exclude each other: with --http-open the page requires no token");
    if (!is_loopback(options.http_bind))
        return fail(ErrorCode::invalid,
                    fmt::format("--http-open is for a page on loopback: on --http-bind {} everybody who reaches this "
                                "machine could use the page. Leave --http-open out",
                                options.http_bind));
    return true;
}

}  // namespace

bool is_loopback(const std::string& address) {
    std::error_code error;
    const auto parsed = asio::ip::make_address(address, error);
    return !error && secure::on_this_machine(parsed);
}

Result<AgentAddress> parse_agent_address(const std::string& text) {
    AgentAddress address;
    std::string_view rest;
    if (text.starts_with('[')) {
        const std::size_t end = text.find(']');
        if (end == std::string::npos)
            return fail(ErrorCode::invalid, fmt::format("--agent takes HOST:PORT, not {}", text));
        address.host = text.substr(1, end - 1);
        rest = std::string_view(text).substr(end + 1);
    } else {
        const std::size_t colon = text.find(':');
        address.host = text.substr(0, colon);
        rest = colon == std::string::npos ? std::string_view{} : std::string_view(text).substr(colon);
    }
    if (address.host.empty() || (!rest.empty() && !rest.starts_with(':')))
        return fail(ErrorCode::invalid, fmt::format("--agent takes HOST:PORT, not {}", text));
    if (!rest.empty()) {
        const auto port = parse_port(rest.substr(1), 1);
        if (!port) return fail(ErrorCode::invalid, fmt::format("--agent takes HOST:PORT, not {}", text));
        address.port = *port;
    }
    return address;
}

std::string default_data_dir() {
    const char* data = std::getenv("XDG_DATA_HOME");
    if (data != nullptr && data[0] == '/') return std::string(data) + "/flamewire";
    const char* home = std::getenv("HOME");
    return home != nullptr && home[0] != '\0' ? std::string(home) + "/.local/share/flamewire" : std::string{};
}

void add_import_memory(CLI::App& app, std::string& size) {
    app.add_option("--import-memory", size,
                   "memory that the import of one file of another tool may take (1G); beyond it the import ends")
        ->type_name("SIZE");
}

Result<std::uint64_t> parse_import_memory(const std::string& size) {
    std::uint64_t bytes = Options().import_memory;
    TRY(take_size("--import-memory", size, bytes));
    return bytes;
}

void add_symbol_options(CLI::App& app, SettingsValues& settings) {
    app.add_option("--binary", settings.binaries, "unstripped file to take symbols from (repeatable)")
        ->type_name("FILE")
        ->allow_extra_args(false);
    app.add_option("--map", settings.maps, "GNU ld's map of a file without symbols (repeatable)")
        ->type_name("[MODULE=]FILE")
        ->allow_extra_args(false);
    app.add_option("--source-dir", settings.source_dir, "root of the sources")->type_name("DIR")->capture_default_str();
    app.add_option("--path-map", settings.path_map, "rewrite compile-time paths (repeatable)")
        ->type_name("FROM=TO")
        ->allow_extra_args(false);
    app.add_option("--sysroot", settings.sysroot, "libraries and sources of the target")->type_name("DIR");
    app.add_option("--debuginfod", settings.debuginfod,
                   "ask this server for programs, debug info and sources that are not here (repeatable); env: those of "
                   "DEBUGINFOD_URLS")
        ->type_name("URL|env")
        ->allow_extra_args(false);
    app.add_option("--debuginfod-cache-size", settings.debuginfod_cache_size,
                   "disk space for files from debuginfod servers (500M, 20G)")
        ->type_name("SIZE")
        ->capture_default_str();
    app.add_flag("--inline,!--no-inline", settings.inlines, "show inlined functions (default: on)");
    app.add_option("--toolchain-prefix", settings.toolchain_prefix,
                   "prefix of a cross compiler: its sysroot is used (runs PREFIXgcc -print-sysroot, once)")
        ->type_name("PREFIX");
}

Result<std::vector<std::string>> finish_symbol_options(SettingsValues& settings, const std::string& data_dir) {
    std::vector<std::string> remarks;
    for (const std::string& map : settings.path_map)
        if (!parse_path_map(map)) return fail(ErrorCode::invalid, fmt::format("--path-map takes FROM=TO, not {}", map));
    if (const std::string& prefix = settings.toolchain_prefix; !prefix.empty() && settings.sysroot.empty()) {
        // A server without these symbols is better than none: report the problem and continue.
        auto sysroot = sysroot_of_toolchain(prefix);
        remarks.push_back(
            fmt::format("--toolchain-prefix {}: {}", prefix,
                        sysroot ? fmt::format("its sysroot {} is used", *sysroot) : sysroot.error().message));
        settings.sysroot = std::move(sysroot).value_or(std::string{});
    }
    TRY(check(settings));
    settings.debuginfod = TRY(symbol::debuginfod_urls(settings.debuginfod));
    const auto cache_bytes = parse_size(settings.debuginfod_cache_size);
    if (!cache_bytes)
        return fail(ErrorCode::invalid, fmt::format("--debuginfod-cache-size: {}", cache_bytes.error().message));
    settings.debuginfod_cache_bytes = *cache_bytes;
    if (data_dir.empty()) return remarks;
    settings.data_directory = data_dir;
    settings.module_directory = data_dir + "/modules";
    settings.upload_directory = data_dir + "/given";
    settings.debuginfod_directory = data_dir + "/debuginfod";
    return remarks;
}

// "profiler", "/profiler" and "/profiler/" are the same.
Result<std::string> parse_prefix(std::string_view text) {
    while (text.starts_with('/')) text.remove_prefix(1);
    while (text.ends_with('/')) text.remove_suffix(1);
    if (text.empty()) return std::string("/");
    const bool plain = std::ranges::all_of(text, [](unsigned char c) {
        return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.' || c == '/' || c == '~';
    });
    if (!plain || text.size() > 200)
        return fail(ErrorCode::invalid, "--http-prefix is a path of letters, digits, and - _ . ~ /");
    return fmt::format("/{}/", text);
}

void ServerCommandLine::add_addresses(CLI::App& app) {
    app.add_option("--port", options_.port, "TCP port for agents; 0 picks a free one")
        ->capture_default_str()
        ->check(CLI::Range(0, 65535));
    app.add_option("--bind", options_.bind, "address for agents, which need a pairing code")->capture_default_str();
    app.add_flag("--insecure", options_.insecure,
                 "accept agents without encryption and code, too: anyone on the network can read and change "
                 "everything, and anyone can pose as an agent");
    app.add_option("--http-port", options_.http_port, "port of the page; 0 picks a free one")
        ->capture_default_str()
        ->check(CLI::Range(0, 65535));
    app.add_option("--http-bind", options_.http_bind,
                   "address of the page; it asks for the token that is printed with it")
        ->capture_default_str();
    app.add_option("--http-name", options_.http_names, "host name by which browsers may reach the page (repeatable)")
        ->type_name("HOST")
        ->allow_extra_args(false);
    app.add_option("--http-prefix", http_prefix_, "path at which a reverse proxy shows the page")->type_name("PATH");
    app.add_option("--http-token-file", options_.http_token_file,
                   "file with the token of the page; by default http-token in the data directory")
        ->type_name("FILE");
    app.add_flag("--http-open", options_.http_open,
                 "let every user of this machine use the page, without a token; on loopback only");
    app.add_option("--http-cert", options_.http_cert,
                   "certificate chain of the page in PEM; the page is then served over HTTPS")
        ->type_name("FILE");
    app.add_option("--http-key", options_.http_key, "private key of the certificate, in PEM")->type_name("FILE");
    app.add_option("--web-dir", options_.web_dir,
                   "for development only: serve the page's files from this folder instead of the program")
        ->type_name("DIR");
}

void ServerCommandLine::add_sessions(CLI::App& app) {
    app.add_option("--max-samples", options_.max_samples, "rows in memory for each session; older ones become coarser")
        ->capture_default_str();
    app.add_option("--table-memory", table_memory_,
                   "memory for names and stacks of each session (1G); beyond it samples are counted, not shown")
        ->type_name("SIZE");
    app.add_option("--session-size", session_size_,
                   "largest file of a session that is recorded (32G); beyond it batches wait with the agent")
        ->type_name("SIZE");
    app.add_option("--import", options_.imports, "make a session of a recording or a file of another tool (repeatable)")
        ->type_name("FILE")
        ->allow_extra_args(false);
    add_import_memory(app, import_memory_);
    app.add_option("--tag", tags_, "tag of every new session, to find it by (repeatable)")
        ->type_name("KEY=VALUE")
        ->allow_extra_args(false);
    app.add_option("--keep-count", options_.keep.count,
                   "number of sessions to keep; beyond it, the oldest ended ones are deleted")
        ->type_name("N")
        ->check(CLI::PositiveNumber);
    app.add_option("--keep-days", options_.keep.days, "delete ended sessions after this many days")
        ->type_name("N")
        ->check(CLI::PositiveNumber);
    app.add_option("--keep-size", keep_size_,
                   "disk space for all sessions (500M, 20G); beyond it, the oldest ended ones are deleted")
        ->type_name("SIZE");
}

void ServerCommandLine::add(CLI::App& app) {
    add_addresses(app);
    app.add_option("--data-dir", options_.data_dir, "where sessions are kept (default: flamewire below XDG_DATA_HOME)");
    app.add_option("--agent", agents_, "connect to a listening agent, HOST:PORT (repeatable)")
        ->type_name("HOST:PORT")
        ->allow_extra_args(false);
    add_symbol_options(app, options_.settings);
    app.add_option(
           "--browse-root", options_.browse_roots,
           "folder in which the page may browse for files (repeatable), or none; default: source folder, sysroot, "
           "folders of binaries, home")
        ->type_name("DIR")
        ->allow_extra_args(false);
    add_sessions(app);
    app.add_option("--addr2line", addr2line_, "not needed: symbols are read in process");
    app.add_option("--readelf", readelf_, "not needed: files are read in process");
    app.add_option("--fetch-modules", fetch_modules_, "ask agents for the symbols of files that are not here (on)")
        ->type_name("on|off")
        ->check(CLI::IsMember({"on", "off"}));
    app.add_option("--fetch-cap", options_.fetch_cap_mib, "MiB of such a file's symbols, at most")
        ->capture_default_str()
        ->check(CLI::Range(1, 4096));
    app.add_flag("--accept-perflens", options_.accept_perflens, "accept agents of PerfLens (0.9, 0.10), too");
    app.add_option("--perflens-token", options_.perflens_token,
                   "the pairing code that a PerfLens agent printed (or PERFLENS_TOKEN)")
        ->type_name("CODE")
        ->envname("PERFLENS_TOKEN");
    app.add_flag("--verbose", options_.verbose, "log more");
}

// Checks what CLI11 does not: converts texts to values. Errors name the option.
Result<Options> ServerCommandLine::finish() {
    Options options = options_;
    for (const std::string& text : agents_) options.agents.push_back(TRY(parse_agent_address(text)));
    TRY(finish_keeping(options, tags_, keep_size_));
    TRY(take_size("--table-memory", table_memory_, options.table_memory));
    TRY(take_size("--session-size", session_size_, options.session_size));
    options.import_memory = TRY(parse_import_memory(import_memory_));
    if (options.max_samples < 1000) return fail(ErrorCode::invalid, "--max-samples is at least 1000");
    if (options.data_dir.empty()) options.data_dir = default_data_dir();
    if (options.data_dir.empty()) return fail(ErrorCode::invalid, "there is no home directory: give --data-dir");
    options.data_dir = std::filesystem::absolute(options.data_dir).lexically_normal().string();
    options.remarks = TRY(finish_symbol_options(options.settings, options.data_dir));
    for (const std::string& file : options.imports)
        if (std::error_code error; !std::filesystem::is_regular_file(file, error))
            return fail(ErrorCode::not_found, fmt::format("--import {}: there is no such file", file));
    options.http_prefix = TRY(parse_prefix(http_prefix_));
    TRY(check_http_open(options));
    if (options.http_cert.empty() != options.http_key.empty())
        return fail(ErrorCode::invalid, "--http-cert and --http-key belong together: give both");
    if (std::error_code error; !options.web_dir.empty() && !std::filesystem::is_directory(options.web_dir, error))
        return fail(ErrorCode::invalid, fmt::format("--web-dir {} is not a directory", options.web_dir));
    options.browse_roots = TRY(finish_browse_roots(options));
    options.fetch_modules = fetch_modules_ == "on";
    if (!addr2line_.empty()) options.remarks.emplace_back("--addr2line is not needed: symbols are read in process");
    if (!readelf_.empty()) options.remarks.emplace_back("--readelf is not needed: files are read in process");
    return options;
}

// At most one of these options may be given.
static Result<PairingAction> pairing_action(bool list, bool make, const std::string& renewed,
                                            const std::string& withdrawn, const std::string& paired) {
    using Kind = PairingAction::Kind;
    if (int{list} + int{make} + int{!renewed.empty()} + int{!withdrawn.empty()} + int{!paired.empty()} > 1)
        return fail(ErrorCode::invalid,
                    "--list-keys, --new-key, --renew-key, --withdraw-key and --pair-agent exclude each other");
    if (list) return PairingAction{Kind::list, {}};
    if (make) return PairingAction{Kind::make, {}};
    if (!renewed.empty()) return PairingAction{Kind::renew, renewed};
    if (!withdrawn.empty()) return PairingAction{Kind::withdraw, withdrawn};
    if (paired.empty()) return PairingAction{};
    const AgentAddress address = TRY(parse_agent_address(paired));
    return PairingAction{Kind::put, fmt::format("{}:{}", address.host, address.port)};
}

ParsedOptions parse_options(int argc, const char* const* argv) {
    ParsedOptions parsed;
    CLI::App app(
        "flamewire-server: takes the profiles of agents, names them, keeps them and shows them in the browser.",
        "flamewire-server");
    ServerCommandLine line;
    line.add(app);
    bool version = false;
    app.add_flag("--version", version, "print the version");
    bool list_keys = false, new_key = false;
    std::string renewed, withdrawn, paired;
    app.add_flag("--list-keys", list_keys, "list the pairing keys, without their secrets, and exit");
    app.add_flag("--new-key", new_key, "make a pairing code for one more agent, print it, and exit");
    app.add_option("--renew-key", renewed, "make a code that replaces this key once it is used, print it, and exit")
        ->type_name("ID");
    app.add_option("--withdraw-key", withdrawn, "withdraw a pairing key, also of a running server, and exit")
        ->type_name("ID");
    app.add_option("--pair-agent", paired,
                   "store the pairing code of a listening agent, read from standard input, and exit")
        ->type_name("HOST:PORT");
    try {
        app.parse(argc, argv);
    } catch (const CLI::CallForHelp&) {
        parsed.message = app.help();
        return parsed;
    } catch (const CLI::ParseError& error) {
        parsed.message = fmt::format("flamewire-server: {} (see --help)\n", error.what());
        parsed.exit_code = 2;
        return parsed;
    }
    if (version) {
        parsed.message = "flamewire-server " FLAMEWIRE_VERSION "\n";
        return parsed;
    }
    auto finished = line.finish();
    if (finished) {
        if (auto action = pairing_action(list_keys, new_key, renewed, withdrawn, paired))
            finished->pairing = std::move(*action);
        else
            finished = std::unexpected(std::move(action).error());
    }
    if (finished) {
        parsed.options = std::move(*finished);
    } else {
        parsed.message = fmt::format("flamewire-server: {} (see --help)\n", finished.error().message);
        parsed.exit_code = 2;
    }
    return parsed;
}

}  // namespace flamewire::server
