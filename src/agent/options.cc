// One table has the options with their values. getopt_long splits the command line by it.
#include "agent/options.h"

#include <fmt/format.h>
#include <getopt.h>

#include <algorithm>
#include <array>
#include <bit>
#include <iterator>
#include <type_traits>
#include <variant>

#include "agent/option_values.h"
#include "agent/perf/event_items.h"

namespace flamewire::agent {

namespace {

std::unexpected<Error> usage(std::string sentence) { return fail(ErrorCode::invalid, std::move(sentence)); }

struct Parsed {
    Options options;
    std::uint64_t given = 0;  // bits of options, in the order of `rules`

    [[nodiscard]] bool has(std::uint64_t any_of) const { return (given & any_of) != 0; }
};

// Where a value goes. monostate: only Parsed::given has the option.
using Field = std::variant<std::monostate, bool Options::*, bool Settings::*, std::uint16_t Options::*,
                           std::uint32_t Options::*, std::uint32_t Settings::*, std::uint64_t Options::*,
                           std::uint64_t Settings::*, std::string Options::*, std::string Settings::*>;

struct Rule {
    enum class Takes : std::uint8_t { nothing, text, number, bytes, other };

    const char* name;  // with its two dashes
    Takes takes = Takes::nothing;
    Field field{};
    std::uint64_t lowest = 0, highest = 0;  // `nothing`: lowest is stored
    const char* if_empty = nullptr;         // the message for an empty text
    // Set if a second one would silently replace the first: what to do instead.
    const char* instead = nullptr;

    [[nodiscard]] constexpr Rule once(const char* hint) const {
        Rule rule = *this;
        rule.instead = hint;
        return rule;
    }
};

constexpr Rule flag(const char* name, Field field = {}, bool value = true) {
    return {.name = name, .field = field, .lowest = value ? 1U : 0U};
}
constexpr Rule text(const char* name, Field field, const char* if_empty) {
    return {.name = name, .takes = Rule::Takes::text, .field = field, .if_empty = if_empty};
}
constexpr Rule number(const char* name, Field field, std::uint64_t lowest, std::uint64_t highest) {
    return {.name = name, .takes = Rule::Takes::number, .field = field, .lowest = lowest, .highest = highest};
}
constexpr Rule bytes(const char* name, Field field, std::uint64_t lowest, std::uint64_t highest) {
    return {.name = name, .takes = Rule::Takes::bytes, .field = field, .lowest = lowest, .highest = highest};
}
// Read by read_other().
constexpr Rule other(const char* name) { return {.name = name, .takes = Rule::Takes::other}; }

constexpr const char* comma_pids = ", with commas between the processes";
constexpr const char* comma_names = ", with commas between the names";

constexpr Rule rules[] = {
    flag("--listen"),
    other("--server"),
    text("--output", &Options::output, "--output needs a file name, or - for standard output"),
    number("--port", &Options::port, 1, 65'535),
    text("--bind", &Options::host, "--bind needs an address, for example --bind 0.0.0.0"),
    text("--pair", &Options::pair, "--pair needs the code that the other side printed"),
    text("--pair-file", &Options::pair_file, "--pair-file needs a file name"),
    flag("--insecure", &Options::insecure),
    flag("--force", &Options::force),
    other("--pid").once(comma_pids),
    other("--name"),
    flag("--all"),
    other("--cpus").once(", with commas between the CPUs"),
    other("--cgroup"),
    other("--container").once("; to give several, repeat --cgroup"),
    number("--delay", &Options::delay_ms, 0, limits::max_delay_ms).once(""),
    other("--allow-pid").once(comma_pids),
    other("--allow-user").once(comma_names),
    other("--allow-command").once(comma_names),
    flag("--allow-kprobes", &Options::allow_kprobes),
    flag("--allow-breakpoints", &Options::allow_breakpoints),
    number("--frequency", &Settings::frequency_hz, 1, limits::max_frequency_hz),
    number("--count", &Settings::period, 1, limits::max_period),
    number("--duration", &Settings::duration_s, 1, limits::max_duration_s),
    number("--rounds", &Options::rounds, 1, limits::max_rounds),
    number("--interval", &Settings::interval_ms, limits::min_interval_ms, limits::max_interval_ms),
    text("--events", &Settings::events, "--events needs at least one event, for example --events cpu-clock"),
    text("--trace", &Options::trace, "--trace needs at least one event, for example --trace sched:sched_switch"),
    number("--trace-first", &Settings::trace_first, 1, limits::max_traced),
    text("--filter", &Settings::filter, "--filter needs an expression, for example --filter 'prev_pid == 42'"),
    text("--stat", &Settings::stat, "--stat needs a list of events, default or none"),
    other("--unwind"),
    bytes("--stack-size", &Settings::stack_bytes, limits::min_stack_bytes, limits::max_stack_bytes),
    number("--unwind-memory", &Settings::unwind_memory_bytes, limits::min_unwind_mib, limits::max_unwind_mib),
    number("--max-depth", &Settings::max_depth, limits::min_depth, limits::max_depth),
    flag("--no-kernel", &Settings::kernel, false),
    number("--max-slowdown", &Options::max_slowdown_percent, 1, limits::max_slowdown_percent),
    other("--metrics"),
    bytes("--spool", &Options::spool_bytes, limits::min_spool_bytes, limits::max_spool_bytes),
    bytes("--module-cap", &Options::module_cap_bytes, 0, limits::max_module_bytes),
    flag("--no-module-upload", &Options::module_cap_bytes, false),
    other("--ring-pages"),
    text("--capture", &Options::capture, "--capture needs a file name"),
    flag("--no-seccomp", &Options::seccomp, false),
    flag("--verbose", &Options::verbose),
    flag("--help"),
    flag("--version"),
    flag("--doctor"),
    text("--describe", &Options::describe, "--describe needs at least one event, for example --describe 'sched:*'"),
};
constexpr int first_code = 256;         // of getopt_long, for rules[0]
static_assert(std::size(rules) <= 64);  // bits of Parsed::given

consteval int code_of(std::string_view name) {
    int index = 0;
    while (rules[index].name != name) ++index;
    return first_code + index;
}
consteval std::uint64_t bit_of(std::string_view name) { return std::uint64_t{1} << (code_of(name) - first_code); }

template <class Type>
void store(const Field& field, Type value, Options& options) {
    if (const auto* own = std::get_if<Type Options::*>(&field)) options.*(*own) = value;
}
template <class Type>
void store_in_both(const Field& field, const Type& value, Options& options) {
    store(field, value, options);
    if (const auto* member = std::get_if<Type Settings::*>(&field)) options.settings.*(*member) = value;
}

Result<bool> read_server(std::string_view host, Options& to) {
    if (host.empty()) return usage("--server needs the host that flamewire-server runs on");
    if (std::ranges::count(host, ':') == 1)
        return usage(fmt::format("--server takes a host without port: --server {} --port {}",
                                 host.substr(0, host.find(':')), host.substr(host.find(':') + 1)));
    to.host = host;
    return true;
}

Result<bool> read_metrics(std::string_view text, HealthSettings& to) {
    to.enabled = text != "off";
    if (!to.enabled) return true;
    const auto seconds =
        parse_number("--metrics", text, HealthSettings::min_interval_s, HealthSettings::max_interval_s);
    if (!seconds)
        return usage(fmt::format("--metrics must be {} to {} seconds or off, not '{}'", HealthSettings::min_interval_s,
                                 HealthSettings::max_interval_s, text));
    to.interval_s = static_cast<std::uint32_t>(*seconds);
    return true;
}

Result<bool> read_other(int code, std::string_view text, Options& to) {
    switch (code) {
        case code_of("--server"): return read_server(text, to);
        case code_of("--pid"): return parse_pids("--pid", text, to.pids);
        case code_of("--name"):
            if (text.empty()) return usage("--name needs the name of a process");
            to.names.emplace_back(text);
            break;
        case code_of("--cpus"): return parse_cpus("--cpus", text, to.wide.cpus);
        case code_of("--cgroup"):
            if (text.empty() || to.wide.cgroups.size() == limits::max_cgroups)
                return usage(
                    fmt::format("--cgroup must be the path of a control group, at most {} times", limits::max_cgroups));
            to.wide.cgroups.emplace_back(text);
            break;
        case code_of("--container"):
            if (text.empty()) return usage("--container must be an id, its beginning, or a name");
            to.wide.container = text;
            break;
        case code_of("--allow-pid"): return parse_pids("--allow-pid", text, to.allowed.pids);
        case code_of("--allow-user"): return parse_words("--allow-user", text, to.allowed.users);
        case code_of("--allow-command"):
            (void)TRY(parse_words("--allow-command", text, to.allowed.commands));
            if (text.find('/') != text.npos)
                return usage("--allow-command takes the file names of executables, without their folders");
            break;
        case code_of("--unwind"): to.settings.unwind = text; return check_unwind(text);
        case code_of("--ring-pages"):
            to.ring_pages =
                static_cast<std::uint32_t>(TRY(parse_number("--ring-pages", text, 1, limits::max_ring_pages)));
            if (!std::has_single_bit(to.ring_pages))
                return usage(fmt::format("--ring-pages must be a power of two, not {}", to.ring_pages));
            break;
        case code_of("--metrics"): return read_metrics(text, to.health);
        default: break;
    }
    return true;
}

Result<bool> apply(const Rule& rule, std::string_view text, Parsed& to) {
    const std::uint64_t bit = std::uint64_t{1} << (&rule - rules);
    if (rule.instead != nullptr && (to.given & bit) != 0)
        return usage(fmt::format("{} is given once{}", rule.name, rule.instead));
    to.given |= bit;
    std::uint64_t value = rule.lowest;
    if (rule.takes == Rule::Takes::other)
        return read_other(first_code + static_cast<int>(&rule - rules), text, to.options);
    if (rule.takes == Rule::Takes::text && text.empty()) return usage(rule.if_empty);
    if (rule.takes == Rule::Takes::number) value = TRY(parse_number(rule.name, text, rule.lowest, rule.highest));
    if (rule.takes == Rule::Takes::bytes) value = TRY(parse_bytes(rule.name, text, rule.lowest, rule.highest));
    store(rule.field, static_cast<std::uint16_t>(value), to.options);
    store_in_both(rule.field, value != 0, to.options);
    store_in_both(rule.field, static_cast<std::uint32_t>(value), to.options);
    store_in_both(rule.field, value, to.options);
    store_in_both(rule.field, std::string(text), to.options);
    return true;
}

// Settings that depend on which options were given. They are final before the combinations are checked.
void derive(Parsed& parsed) {
    Options& options = parsed.options;
    Settings& settings = options.settings;
    options.mode = parsed.has(bit_of("--output"))   ? Mode::output
                   : parsed.has(bit_of("--server")) ? Mode::server
                                                    : Mode::listen;
    if (parsed.has(bit_of("--listen")) && !parsed.has(bit_of("--bind"))) options.host = "0.0.0.0";
    options.wide.all = parsed.has(bit_of("--all"));
    options.duration_given = parsed.has(bit_of("--duration") | bit_of("--rounds"));
    settings.frequency_given = parsed.has(bit_of("--frequency"));
    settings.max_depth_given = parsed.has(bit_of("--max-depth"));
    if (parsed.has(bit_of("--unwind-memory"))) settings.unwind_memory_bytes <<= 20;  // from MiB
    settings.stack_bytes = whole_words(settings.stack_bytes);
    if (!options.trace.empty()) {
        if (!settings.events.empty()) settings.events += ',';
        settings.events += traced_events(options.trace);
    }
    options.sched = settings.stat == "sched";
    if (options.sched) settings.stat = "none";
}

Result<bool> check_combination(const Parsed& parsed, bool stdout_is_terminal) {
    const Options& options = parsed.options;
    const bool server = parsed.has(bit_of("--server")), listen = parsed.has(bit_of("--listen"));
    const bool output = parsed.has(bit_of("--output"));
    const bool pairing = !options.pair.empty() || !options.pair_file.empty();
    const int modes = int{listen} + int{server} + int{output};
    if (modes == 0)
        return usage("specify a destination: --server HOST, --listen or --output FILE (--help lists all options)");
    if (modes > 1) return usage("--server, --listen and --output exclude each other");
    const int targets = int{!options.pids.empty()} + int{!options.names.empty()} + int{!options.command.empty()};
    if (targets > 1) return usage("--pid, --name and -- CMD exclude each other");
    if (targets > 0 && options.wide.given())
        return usage("--all, --cpus, --cgroup and --container exclude --pid, --name and -- CMD");
    if (const auto checked = check_wide(options.wide); !checked) return usage("--" + checked.error().message);
    if (parsed.has(bit_of("--frequency")) && parsed.has(bit_of("--count")))
        return usage("--frequency and --count exclude each other");
    if (parsed.has(bit_of("--bind")) && !listen) return usage("--bind needs --listen");
    if (!options.pair.empty() && !options.pair_file.empty()) return usage("--pair and --pair-file exclude each other");
    if (output && (pairing || options.insecure))
        return usage("--pair, --pair-file and --insecure need --server or --listen");
    if (options.insecure && server && pairing) return usage("--insecure excludes --pair and --pair-file");
    if (parsed.has(bit_of("--delay")) && options.command.empty())
        return usage("--delay needs a command to launch: -- CMD");
    if (options.sched && (options.output != "-" || !options.settings.events.empty()))
        return usage("--stat sched only prints a table: give it with --output - and without --events");
    if (options.force && !output) return usage("--force needs --output FILE");
    if (!options.capture.empty() && !options.has_target())
        return usage("--capture needs a target: --pid PID, --name COMM, --all or -- CMD");
    if (!options.capture.empty() && options.capture == options.output)
        return usage("--capture and --output need a file each");
    if (options.settings.events.starts_with("none,")) return usage("--trace excludes --events none");
    if (options.settings.trace_first != 0 && !traces_events(options.settings.events))
        return usage("--trace-first needs --trace LIST");
    if (!options.settings.samples() && options.settings.stat == "none")
        return usage("--events none counts without sampling; with --stat none nothing is left to do");
    if (!output) return true;
    if (!options.allowed.all())
        return usage(
            "--allow-pid, --allow-user and --allow-command need --server or --listen: they limit what a server "
            "may choose");
    if (options.allow_kprobes) return usage("--allow-kprobes needs --server or --listen");
    if (options.allow_breakpoints)
        return usage("--allow-breakpoints needs --server or --listen: it lets servers set breakpoints");
    if (!options.has_target()) return usage("--output needs a target: --pid PID, --name COMM, --all or -- CMD");
    if (options.prints_table()) return true;
    if (options.output == "-" && !options.command.empty())
        return usage("--output - cannot be used with -- CMD, whose own output would mix with the session; give a file");
    if (options.output == "-" && stdout_is_terminal)
        return usage("--output - writes a binary session to a terminal; redirect it or give a file");
    return true;
}

}  // namespace

Result<CommandLine> parse_command_line(const std::vector<std::string>& words, bool stdout_is_terminal) {
    std::vector<char*> argv;
    argv.reserve(words.size() + 1);
    for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));  // getopt only reads
    argv.push_back(nullptr);
    const int argc = static_cast<int>(words.size());

    std::array<option, std::size(rules) + 1> long_options{};
    for (std::size_t i = 0; i < std::size(rules); ++i)
        long_options[i] = {rules[i].name + 2, rules[i].takes == Rule::Takes::nothing ? no_argument : required_argument,
                           nullptr, first_code + static_cast<int>(i)};

    Parsed parsed;
    Options& options = parsed.options;
    ::optind = 0;  // glibc: restart scanning
    ::opterr = 0;
    for (;;) {
        // '+': stop at the first word that is not an option. ':': distinguish a missing argument from an unknown
        // option.
        int code = ::getopt_long(argc, argv.data(), "+:ahV", long_options.data(), nullptr);
        if (code < 0) break;
        const char* word = ::optind > 0 && ::optind <= argc ? argv[static_cast<std::size_t>(::optind) - 1] : "";
        if (code == ':') return usage(fmt::format("{} needs a value (--help lists all options)", word));
        if (code == '?') {
            const bool known_without_value = ::optopt >= first_code;
            return usage(known_without_value ? fmt::format("{} takes no value", word)
                                             : fmt::format("unknown option {} (--help lists all options)", word));
        }
        if (code == 'a') code = code_of("--all");
        if (code == 'h') code = code_of("--help");
        if (code == 'V') code = code_of("--version");
        const Rule& rule = rules[code - first_code];
        (void)TRY(apply(rule, ::optarg != nullptr ? ::optarg : "", parsed));
        if (parsed.has(bit_of("--help"))) return CommandLine{Request::help, {}};
        if (parsed.has(bit_of("--version"))) return CommandLine{Request::version, {}};
        if (parsed.has(bit_of("--doctor"))) return CommandLine{Request::doctor, {}};
    }
    const auto first = static_cast<std::size_t>(::optind);
    const bool separated = first > 0 && first <= words.size() && words[first - 1] == "--";
    if (first < words.size() && !separated)
        return usage(fmt::format("unexpected argument '{}'; put a command to launch after --", words[first]));
    if (separated && first == words.size()) return usage("no command after --");
    options.command.assign(words.begin() + static_cast<std::ptrdiff_t>(std::min(first, words.size())), words.end());
    derive(parsed);
    if (!options.describe.empty()) return CommandLine{Request::describe, std::move(options)};
    (void)TRY(check_combination(parsed, stdout_is_terminal));
    if (options.sched) {
        options.settings.events = "off-cpu";
        options.settings.unwind = "fp";  // the stacks are not used
    }
    if (options.mode == Mode::output && !parsed.has(bit_of("--interval")))
        options.settings.interval_ms = file_interval_ms;
    return CommandLine{Request::run, std::move(options)};
}

}  // namespace flamewire::agent
