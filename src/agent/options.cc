// getopt_long splits the command line. Every rule about values and combinations is here, with one message each.
#include "agent/options.h"

#include <fmt/format.h>
#include <getopt.h>

#include <algorithm>
#include <charconv>

#include "agent/perf/capabilities.h"
#include "agent/perf/pmu.h"

namespace flamewire::agent {

namespace {

std::unexpected<Error> usage(std::string sentence) { return fail(ErrorCode::invalid, std::move(sentence)); }

enum Option : int {
    opt_listen = 256,
    opt_server,
    opt_output,
    opt_port,
    opt_bind,
    opt_pair,
    opt_pair_file,
    opt_insecure,
    opt_force,
    opt_pid,
    opt_name,
    opt_all,
    opt_cpus,
    opt_cgroup,
    opt_container,
    opt_delay,
    opt_allow_pid,
    opt_allow_user,
    opt_allow_command,
    opt_frequency,
    opt_count,
    opt_duration,
    opt_rounds,
    opt_interval,
    opt_events,
    opt_filter,
    opt_stat,
    opt_unwind,
    opt_stack_size,
    opt_unwind_memory,
    opt_max_depth,
    opt_no_kernel,
    opt_metrics,
    opt_spool,
    opt_module_cap,
    opt_no_module_upload,
    opt_ring_pages,
    opt_capture,
    opt_no_seccomp,
    opt_verbose,
    opt_help,
    opt_version,
    opt_doctor,
};

// In the order of Option.
const option long_options[] = {
    {"listen", no_argument, nullptr, opt_listen},
    {"server", required_argument, nullptr, opt_server},
    {"output", required_argument, nullptr, opt_output},
    {"port", required_argument, nullptr, opt_port},
    {"bind", required_argument, nullptr, opt_bind},
    {"pair", required_argument, nullptr, opt_pair},
    {"pair-file", required_argument, nullptr, opt_pair_file},
    {"insecure", no_argument, nullptr, opt_insecure},
    {"force", no_argument, nullptr, opt_force},
    {"pid", required_argument, nullptr, opt_pid},
    {"name", required_argument, nullptr, opt_name},
    {"all", no_argument, nullptr, opt_all},
    {"cpus", required_argument, nullptr, opt_cpus},
    {"cgroup", required_argument, nullptr, opt_cgroup},
    {"container", required_argument, nullptr, opt_container},
    {"delay", required_argument, nullptr, opt_delay},
    {"allow-pid", required_argument, nullptr, opt_allow_pid},
    {"allow-user", required_argument, nullptr, opt_allow_user},
    {"allow-command", required_argument, nullptr, opt_allow_command},
    {"frequency", required_argument, nullptr, opt_frequency},
    {"count", required_argument, nullptr, opt_count},
    {"duration", required_argument, nullptr, opt_duration},
    {"rounds", required_argument, nullptr, opt_rounds},
    {"interval", required_argument, nullptr, opt_interval},
    {"events", required_argument, nullptr, opt_events},
    {"filter", required_argument, nullptr, opt_filter},
    {"stat", required_argument, nullptr, opt_stat},
    {"unwind", required_argument, nullptr, opt_unwind},
    {"stack-size", required_argument, nullptr, opt_stack_size},
    {"unwind-memory", required_argument, nullptr, opt_unwind_memory},
    {"max-depth", required_argument, nullptr, opt_max_depth},
    {"no-kernel", no_argument, nullptr, opt_no_kernel},
    {"metrics", required_argument, nullptr, opt_metrics},
    {"spool", required_argument, nullptr, opt_spool},
    {"module-cap", required_argument, nullptr, opt_module_cap},
    {"no-module-upload", no_argument, nullptr, opt_no_module_upload},
    {"ring-pages", required_argument, nullptr, opt_ring_pages},
    {"capture", required_argument, nullptr, opt_capture},
    {"no-seccomp", no_argument, nullptr, opt_no_seccomp},
    {"verbose", no_argument, nullptr, opt_verbose},
    {"help", no_argument, nullptr, opt_help},
    {"version", no_argument, nullptr, opt_version},
    {"doctor", no_argument, nullptr, opt_doctor},
    {nullptr, 0, nullptr, 0},
};

// The given options, to check their combinations.
struct Given {
    bool listen = false, server = false, output = false, bind = false, frequency = false, count = false, delay = false,
         interval = false;
    std::uint64_t once = 0;  // bits of options that may be given only once
};

// For options of which a second one would silently replace the first: what to do instead. Null: it may be repeated.
const char* instead_of_second(int code) {
    switch (code) {
        case opt_pid:
        case opt_allow_pid:
            return ", with commas between the processes";
        case opt_cpus:
            return ", with commas between the CPUs";
        case opt_allow_user:
        case opt_allow_command:
            return ", with commas between the names";
        case opt_container:
            return "; to give several, repeat --cgroup";
        case opt_delay:
            return "";
        default:
            return nullptr;
    }
}

// Parses a number of bytes with an optional K, M or G (powers of 1,024).
Result<std::uint64_t> parse_bytes(std::string_view what, std::string_view text, std::uint64_t lowest,
                                  std::uint64_t highest) {
    unsigned shift = 0;
    if (!text.empty()) {
        const char suffix = text.back();
        shift = suffix == 'K' || suffix == 'k'   ? 10
                : suffix == 'M' || suffix == 'm' ? 20
                : suffix == 'G' || suffix == 'g' ? 30
                                                 : 0;
    }
    const std::string_view digits = shift == 0 ? text : text.substr(0, text.size() - 1);
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (error != std::errc{} || end != digits.data() + digits.size() || value > highest >> shift ||
        value << shift < lowest)
        return usage(fmt::format("{} must be {} to {} bytes (with K, M or G), not '{}'", what, lowest, highest, text));
    return value << shift;
}

Result<std::uint32_t> parse_health_interval(std::string_view text) {
    const auto seconds =
        parse_number("--metrics", text, HealthSettings::min_interval_s, HealthSettings::max_interval_s);
    if (!seconds)
        return usage(fmt::format("--metrics must be {} to {} seconds or off, not '{}'", HealthSettings::min_interval_s,
                                 HealthSettings::max_interval_s, text));
    return static_cast<std::uint32_t>(*seconds);
}

Result<std::vector<std::uint32_t>> parse_pids(std::string_view what, std::string_view text) {
    std::vector<std::uint32_t> pids;
    for (std::size_t start = 0; start <= text.size();) {
        const std::size_t end = std::min(text.find(',', start), text.size());
        const auto pid =
            static_cast<std::uint32_t>(TRY(parse_number(what, text.substr(start, end - start), 1, limits::max_pid)));
        if (std::ranges::find(pids, pid) == pids.end()) pids.push_back(pid);
        if (pids.size() > limits::max_pids)
            return usage(fmt::format("{} takes at most {} processes", what, limits::max_pids));
        start = end + 1;
    }
    return pids;
}

Result<std::vector<std::string>> parse_words(std::string_view what, std::string_view text) {
    std::vector<std::string> words;
    for (std::size_t start = 0; start <= text.size();) {
        const std::size_t end = std::min(text.find(',', start), text.size());
        words.emplace_back(text.substr(start, end - start));
        if (words.back().empty()) return usage(fmt::format("{} takes names, separated by commas", what));
        start = end + 1;
    }
    return words;
}

Result<bool> apply_settings(int code, std::string_view value, Settings& settings, Options& options, Given& given) {
    switch (code) {
        case opt_frequency:
            settings.frequency_hz =
                static_cast<std::uint32_t>(TRY(parse_number("--frequency", value, 1, limits::max_frequency_hz)));
            given.frequency = settings.frequency_given = true;
            break;
        case opt_count:
            settings.period = TRY(parse_number("--count", value, 1, limits::max_period));
            given.count = true;
            break;
        case opt_duration:
            settings.duration_s =
                static_cast<std::uint32_t>(TRY(parse_number("--duration", value, 1, limits::max_duration_s)));
            options.duration_given = true;
            break;
        case opt_rounds:
            options.rounds = static_cast<std::uint32_t>(TRY(parse_number("--rounds", value, 1, limits::max_rounds)));
            options.duration_given = true;
            break;
        case opt_interval:
            settings.interval_ms = static_cast<std::uint32_t>(
                TRY(parse_number("--interval", value, limits::min_interval_ms, limits::max_interval_ms)));
            given.interval = true;
            break;
        case opt_events:
            if (value.empty()) return usage("--events needs at least one event, for example --events cpu-clock");
            settings.events = value;
            break;
        case opt_filter:
            if (value.empty()) return usage("--filter needs an expression, for example --filter 'prev_pid == 42'");
            settings.filter = value;
            break;
        case opt_stat:
            if (value.empty()) return usage("--stat needs a list of events, default or none");
            options.sched = value == "sched";
            settings.stat = options.sched ? "none" : value;
            break;
        case opt_unwind:
            settings.unwind = TRY(check_unwind(value));
            break;
        case opt_stack_size:
            settings.stack_bytes =
                whole_words(TRY(parse_bytes("--stack-size", value, limits::min_stack_bytes, limits::max_stack_bytes)));
            break;
        case opt_unwind_memory:
            settings.unwind_memory_bytes =
                TRY(parse_number("--unwind-memory", value, limits::min_unwind_mib, limits::max_unwind_mib)) << 20;
            break;
        case opt_max_depth:
            settings.max_depth = static_cast<std::uint32_t>(
                TRY(parse_number("--max-depth", value, limits::min_depth, limits::max_depth)));
            settings.max_depth_given = true;
            break;
        case opt_no_kernel:
            settings.kernel = false;
            break;
        default:
            break;
    }
    return true;
}

Result<bool> apply(int code, std::string_view value, Options& options, Given& given) {
    if (const char* instead = instead_of_second(code)) {
        const std::uint64_t bit = std::uint64_t{1} << (code - opt_listen);
        if ((given.once & bit) != 0)
            return usage(fmt::format("--{} is given once{}", long_options[code - opt_listen].name, instead));
        given.once |= bit;
    }
    switch (code) {
        case opt_listen:
            given.listen = true;
            options.mode = Mode::listen;
            break;
        case opt_server:
            if (value.empty()) return usage("--server needs the host that flamewire-server runs on");
            if (std::ranges::count(value, ':') == 1)
                return usage(fmt::format("--server takes a host without port: --server {} --port {}",
                                         value.substr(0, value.find(':')), value.substr(value.find(':') + 1)));
            given.server = true;
            options.mode = Mode::server;
            options.host = value;
            break;
        case opt_output:
            if (value.empty()) return usage("--output needs a file name, or - for standard output");
            given.output = true;
            options.mode = Mode::output;
            options.output = value;
            break;
        case opt_port:
            options.port = static_cast<std::uint16_t>(TRY(parse_number("--port", value, 1, 65'535)));
            break;
        case opt_bind:
            if (value.empty()) return usage("--bind needs an address, for example --bind 0.0.0.0");
            given.bind = true;
            options.host = value;
            break;
        case opt_pair:
            if (value.empty()) return usage("--pair needs the code that the other side printed");
            options.pair = value;
            break;
        case opt_pair_file:
            if (value.empty()) return usage("--pair-file needs a file name");
            options.pair_file = value;
            break;
        case opt_insecure:
            options.insecure = true;
            break;
        case opt_force:
            options.force = true;
            break;
        case opt_pid:
            options.pids = TRY(parse_pids("--pid", value));
            break;
        case opt_name:
            if (value.empty()) return usage("--name needs the name of a process");
            options.names.emplace_back(value);
            break;
        case opt_allow_pid:
            options.allowed.pids = TRY(parse_pids("--allow-pid", value));
            break;
        case opt_allow_user:
            options.allowed.users = TRY(parse_words("--allow-user", value));
            break;
        case opt_allow_command:
            options.allowed.commands = TRY(parse_words("--allow-command", value));
            if (value.find('/') != value.npos)
                return usage("--allow-command takes the file names of executables, without their folders");
            break;
        case opt_all:
            options.wide.all = true;
            break;
        case opt_cpus:
            options.wide.cpus = TRY(parse_cpus("--cpus", value));
            break;
        case opt_cgroup:
            if (value.empty() || options.wide.cgroups.size() == limits::max_cgroups)
                return usage(
                    fmt::format("--cgroup must be the path of a control group, at most {} times", limits::max_cgroups));
            options.wide.cgroups.emplace_back(value);
            break;
        case opt_container:
            if (value.empty()) return usage("--container must be an id, its beginning, or a name");
            options.wide.container = value;
            break;
        case opt_delay:
            options.delay_ms = static_cast<std::uint32_t>(TRY(parse_number("--delay", value, 0, limits::max_delay_ms)));
            given.delay = true;
            break;
        case opt_metrics:
            options.health.enabled = value != "off";
            if (options.health.enabled) options.health.interval_s = TRY(parse_health_interval(value));
            break;
        case opt_spool:
            options.spool_bytes = static_cast<std::size_t>(
                TRY(parse_bytes("--spool", value, limits::min_spool_bytes, limits::max_spool_bytes)));
            break;
        case opt_module_cap:
            options.module_cap_bytes = TRY(parse_bytes("--module-cap", value, 0, limits::max_module_bytes));
            break;
        case opt_no_module_upload:
            options.module_cap_bytes = 0;
            break;
        case opt_ring_pages:
            options.ring_pages =
                static_cast<std::uint32_t>(TRY(parse_number("--ring-pages", value, 1, limits::max_ring_pages)));
            if ((options.ring_pages & (options.ring_pages - 1)) != 0)
                return usage(fmt::format("--ring-pages must be a power of two, not {}", options.ring_pages));
            break;
        case opt_capture:
            if (value.empty()) return usage("--capture needs a file name");
            options.capture = value;
            break;
        case opt_no_seccomp:
            options.seccomp = false;
            break;
        case opt_verbose:
            options.verbose = true;
            break;
        default:
            return apply_settings(code, value, options.settings, options, given);
    }
    return true;
}

Result<bool> check_combination(const Options& options, const Given& given, bool stdout_is_terminal) {
    const int modes = int{given.listen} + int{given.server} + int{given.output};
    if (modes == 0)
        return usage("specify a destination: --server HOST, --listen or --output FILE (--help lists all options)");
    if (modes > 1) return usage("--server, --listen and --output exclude each other");
    const int targets = int{!options.pids.empty()} + int{!options.names.empty()} + int{!options.command.empty()};
    if (targets > 1) return usage("--pid, --name and -- CMD exclude each other");
    if (targets > 0 && options.wide.given())
        return usage("--all, --cpus, --cgroup and --container exclude --pid, --name and -- CMD");
    if (const auto checked = check_wide(options.wide); !checked) return usage("--" + checked.error().message);
    if (given.frequency && given.count) return usage("--frequency and --count exclude each other");
    if (given.bind && !given.listen) return usage("--bind needs --listen");
    if (!options.pair.empty() && !options.pair_file.empty()) return usage("--pair and --pair-file exclude each other");
    if (given.output && (!options.pair.empty() || !options.pair_file.empty() || options.insecure))
        return usage("--pair, --pair-file and --insecure need --server or --listen");
    if (options.insecure && given.server && (!options.pair.empty() || !options.pair_file.empty()))
        return usage("--insecure excludes --pair and --pair-file");
    if (given.delay && options.command.empty()) return usage("--delay needs a command to launch: -- CMD");
    if (options.sched && (options.output != "-" || !options.settings.events.empty()))
        return usage("--stat sched only prints a table: give it with --output - and without --events");
    if (options.force && !given.output) return usage("--force needs --output FILE");
    if (!options.capture.empty() && !options.has_target())
        return usage("--capture needs a target: --pid PID, --name COMM, --all or -- CMD");
    if (!options.capture.empty() && options.capture == options.output)
        return usage("--capture and --output need a file each");
    if (!options.settings.samples() && options.settings.stat == "none")
        return usage("--events none counts without sampling; with --stat none nothing is left to do");
    if (!given.output) return true;
    if (!options.allowed.all())
        return usage(
            "--allow-pid, --allow-user and --allow-command need --server or --listen: they limit what a server "
            "may choose");
    if (!options.has_target()) return usage("--output needs a target: --pid PID, --name COMM, --all or -- CMD");
    if (options.prints_table()) return true;
    if (options.output == "-" && !options.command.empty())
        return usage("--output - cannot be used with -- CMD, whose own output would mix with the session; give a file");
    if (options.output == "-" && stdout_is_terminal)
        return usage("--output - writes a binary session to a terminal; redirect it or give a file");
    return true;
}

}  // namespace

Result<std::uint64_t> parse_number(std::string_view what, std::string_view text, std::uint64_t lowest,
                                   std::uint64_t highest) {
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size() || text.empty() || value < lowest || value > highest)
        return usage(fmt::format("{} must be a whole number from {} to {}, not '{}'", what, lowest, highest, text));
    return value;
}

Result<std::vector<std::uint32_t>> parse_cpus(std::string_view what, std::string_view text) {
    auto cpus = parse_cpu_list(text);
    if (!cpus || cpus->empty())
        return usage(fmt::format("{} must be a list of CPUs such as 0-3,6, not '{}'", what, text));
    return *std::move(cpus);
}

Result<bool> check_wide(const WideTarget& wide) {
    if (wide.all && !(wide.cgroups.empty() && wide.container.empty()))
        return usage("all means the whole system: give it without a control group or container");
    return true;
}

std::uint32_t whole_words(std::uint64_t stack_bytes) { return static_cast<std::uint32_t>((stack_bytes + 7) / 8 * 8); }

Result<std::string> check_unwind(std::string_view mode) {
    if (mode == "auto" || stack_mode(mode)) return std::string(mode);
    return usage(fmt::format("unknown unwind mode '{}'; modes are auto, fp, dwarf, lbr and hybrid", mode));
}

Result<CommandLine> parse_command_line(const std::vector<std::string>& words, bool stdout_is_terminal) {
    std::vector<char*> argv;
    argv.reserve(words.size() + 1);
    for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));  // getopt only reads
    argv.push_back(nullptr);
    const int argc = static_cast<int>(words.size());

    CommandLine line;
    Given given;
    ::optind = 0;  // glibc: restart scanning
    ::opterr = 0;
    for (;;) {
        // '+': stop at the first word that is not an option. ':': distinguish a missing argument from an unknown
        // option.
        const int code = ::getopt_long(argc, argv.data(), "+:ahV", long_options, nullptr);
        if (code < 0) break;
        const char* word = ::optind > 0 && ::optind <= argc ? argv[static_cast<std::size_t>(::optind) - 1] : "";
        if (code == ':') return usage(fmt::format("{} needs a value (--help lists all options)", word));
        if (code == '?') {
            const bool known_without_value = ::optopt >= opt_listen;
            return usage(known_without_value ? fmt::format("{} takes no value", word)
                                             : fmt::format("unknown option {} (--help lists all options)", word));
        }
        if (code == 'a') line.options.wide.all = true;
        if (code == 'a') continue;
        if (code == opt_help || code == 'h') return CommandLine{Request::help, {}};
        if (code == opt_version || code == 'V') return CommandLine{Request::version, {}};
        if (code == opt_doctor) return CommandLine{Request::doctor, {}};
        (void)TRY(apply(code, ::optarg != nullptr ? ::optarg : "", line.options, given));
    }
    const auto first = static_cast<std::size_t>(::optind);
    const bool separated = first > 0 && first <= words.size() && words[first - 1] == "--";
    if (first < words.size() && !separated)
        return usage(fmt::format("unexpected argument '{}'; put a command to launch after --", words[first]));
    if (separated && first == words.size()) return usage("no command after --");
    line.options.command.assign(words.begin() + static_cast<std::ptrdiff_t>(std::min(first, words.size())),
                                words.end());
    if (given.listen && !given.bind) line.options.host = "0.0.0.0";
    (void)TRY(check_combination(line.options, given, stdout_is_terminal));
    if (line.options.sched) {
        line.options.settings.events = "off-cpu";
        line.options.settings.unwind = "fp";  // the stacks are not used
    }
    if (given.output && !given.interval) line.options.settings.interval_ms = file_interval_ms;
    return line;
}

}  // namespace flamewire::agent
