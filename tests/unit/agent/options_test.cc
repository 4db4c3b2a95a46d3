// Every rule of the command line: what is accepted with which meaning, and the message of each refusal.
#include "agent/options.h"

#include <catch2/catch.hpp>

#include <initializer_list>

using namespace flamewire;
using namespace flamewire::agent;

namespace {

Result<CommandLine> parse(std::initializer_list<const char*> arguments, bool terminal = false) {
    std::vector<std::string> words{"flamewire-agent"};
    words.insert(words.end(), arguments.begin(), arguments.end());
    return parse_command_line(words, terminal);
}

Options accepted(std::initializer_list<const char*> arguments) {
    auto line = parse(arguments);
    INFO((line ? std::string() : line.error().message));
    REQUIRE(line.has_value());
    REQUIRE(line->request == Request::run);
    return line->options;
}

std::string error_message(std::initializer_list<const char*> arguments, bool terminal = false) {
    auto line = parse(arguments, terminal);
    REQUIRE_FALSE(line.has_value());
    CHECK(line.error().code == ErrorCode::invalid);
    CHECK(line.error().message.find('\n') == std::string::npos);
    return line.error().message;
}

}  // namespace

TEST_CASE("defaults of the three modes") {
    const Options listen = accepted({"--listen"});
    CHECK(listen.mode == Mode::listen);
    CHECK(listen.host == "0.0.0.0");
    CHECK(listen.port == 9999);
    CHECK_FALSE(listen.has_target());
    CHECK(listen.settings.frequency_hz == 99);
    CHECK(listen.settings.period == 0);
    CHECK(listen.settings.duration_s == 8);
    CHECK(listen.rounds == 1);
    CHECK(listen.settings.interval_ms == 250);
    CHECK(listen.settings.unwind == "auto");
    CHECK(listen.settings.stack_bytes == 16'384);
    CHECK(listen.settings.max_depth == 1'024);
    CHECK_FALSE(listen.settings.max_depth_given);
    CHECK(listen.settings.unwind_memory_bytes == 33'554'432);
    CHECK(listen.settings.kernel);
    CHECK(listen.settings.events.empty());
    CHECK(listen.spool_bytes == 8'388'608);

    const Options server = accepted({"--server", "desk"});
    CHECK(server.mode == Mode::server);
    CHECK(server.host == "desk");

    const Options output = accepted({"--output", "a.flw", "--pid", "7"});
    CHECK(output.mode == Mode::output);
    CHECK(output.output == "a.flw");
    CHECK_FALSE(output.duration_given);
    CHECK(output.settings.interval_ms == 1000);
    CHECK(accepted({"--output", "a.flw", "--pid", "7", "--interval", "250"}).settings.interval_ms == 250);
}

TEST_CASE("every option reaches its field") {
    const Options o = accepted({"--listen",
                                "--bind",
                                "0.0.0.0",
                                "--port",
                                "1234",
                                "--pid",
                                "3,5,3",
                                "--count",
                                "1000",
                                "--duration",
                                "3",
                                "--rounds",
                                "4",
                                "--interval",
                                "50",
                                "--events",
                                "cpu-clock:u,page-faults",
                                "--unwind",
                                "dwarf",
                                "--stack-size",
                                "8K",
                                "--max-depth",
                                "512",
                                "--unwind-memory",
                                "64",
                                "--no-kernel",
                                "--spool",
                                "64K",
                                "--ring-pages",
                                "8",
                                "--verbose"});
    CHECK(o.host == "0.0.0.0");
    CHECK(o.port == 1234);
    CHECK(o.pids == std::vector<std::uint32_t>{3, 5});
    CHECK(o.settings.period == 1000);
    CHECK(o.settings.duration_s == 3);
    CHECK(o.duration_given);
    CHECK(o.rounds == 4);
    CHECK(o.settings.interval_ms == 50);
    CHECK(o.settings.events == "cpu-clock:u,page-faults");
    CHECK(o.settings.unwind == "dwarf");
    CHECK(o.settings.stack_bytes == 8'192);
    CHECK(o.settings.max_depth == 512);
    CHECK(o.settings.max_depth_given);
    CHECK(o.settings.unwind_memory_bytes == 67'108'864);
    CHECK_FALSE(o.settings.kernel);
    CHECK(o.spool_bytes == 65'536);
    CHECK(o.ring_pages == 8);
    CHECK(o.verbose);
    CHECK(accepted({"--server", "::1"}).host == "::1");
    CHECK(accepted({"--server=h", "--name", "demo"}).names == std::vector<std::string>{"demo"});
    CHECK(accepted({"--listen", "--name", "a", "--name", "b,c"}).names == std::vector<std::string>{"a", "b,c"});
    CHECK(accepted({"--listen", "-a"}).wide == WideTarget{true, {}, {}, {}});
    CHECK(accepted({"--output", "x", "--all", "--cpus", "0-1"}).wide == WideTarget{true, {0, 1}, {}, {}});
    CHECK(accepted({"--output", "x", "--cgroup", "/a,b", "--cgroup", "c", "--container", "d"}).wide ==
          WideTarget{false, {}, {"/a,b", "c"}, "d"});
    CHECK(accepted({"--server", "h", "--spool", "1G"}).spool_bytes == 1'073'741'824);
    CHECK(accepted({"--listen"}).module_cap_bytes == 67'108'864);
    CHECK(accepted({"--listen", "--module-cap", "3M"}).module_cap_bytes == 3'145'728);
    CHECK(accepted({"--listen", "--module-cap", "0"}).module_cap_bytes == 0);
    CHECK(accepted({"--listen", "--no-module-upload"}).module_cap_bytes == 0);
}

TEST_CASE("unwind modes, and stack sizes in whole words") {
    for (const char* mode : {"auto", "fp", "dwarf", "lbr", "hybrid"})
        CHECK(accepted({"--listen", "--unwind", mode}).settings.unwind == mode);
    const auto size = [](const char* text) {
        return accepted({"--listen", "--stack-size", text}).settings.stack_bytes;
    };
    CHECK(size("1024") == 1'024);
    CHECK(size("1025") == 1'032);
    CHECK(size("65521") == 65'528);
    CHECK(size("65528") == 65'528);
    CHECK(size("63K") == 64'512);
}

TEST_CASE("the command after -- is not parsed") {
    const Options o = accepted({"--output", "a", "--delay", "1500", "--", "ls", "--listen", "-x", "--"});
    CHECK(o.command == std::vector<std::string>{"ls", "--listen", "-x", "--"});
    CHECK(o.delay_ms == 1500);
    CHECK(o.mode == Mode::output);
}

TEST_CASE("servers may set breakpoints only with an option") {
    CHECK_FALSE(parse({"--listen"})->options.allow_breakpoints);
    CHECK(parse({"--listen", "--allow-breakpoints"})->options.allow_breakpoints);
    CHECK(error_message({"--output", "x", "--pid", "1", "--allow-breakpoints"}) ==
          "--allow-breakpoints needs --server or --listen: it lets servers set breakpoints");
    CHECK(help_text().find("--allow-breakpoints") != std::string::npos);
}

TEST_CASE("events can be described without a destination") {
    const auto line = parse({"--describe", "sched:*", "--pid", "7"});
    CHECK(line->request == Request::describe);
    CHECK(line->options.describe == "sched:*");
    CHECK(line->options.pids == std::vector<std::uint32_t>{7});
    CHECK(error_message({"--describe", ""}) == "--describe needs at least one event, for example --describe 'sched:*'");
    CHECK(help_text().find("--describe LIST") != std::string::npos);
}

TEST_CASE("help and version take precedence over everything after them") {
    CHECK(parse({"--help"})->request == Request::help);
    CHECK(parse({"-h", "--nonsense"})->request == Request::help);
    CHECK(parse({"--version"})->request == Request::version);
    for (const char* option :
         {"--listen",        "--server",     "--output",    "--port",       "--bind",          "--force",
          "--pid",           "--name",       "--delay",     "--frequency",  "--count",         "--duration",
          "--rounds",        "--interval",   "--events",    "--unwind",     "--stack-size",    "--max-depth",
          "--unwind-memory", "--no-kernel",  "--metrics",   "--spool",      "--module-cap",    "--no-module-upload",
          "--ring-pages",    "--no-seccomp", "--allow-pid", "--allow-user", "--allow-command", "--allow-kprobes",
          "--verbose",       "--pair",       "--pair-file", "--insecure",   "--capture",       "--help",
          "--version",       "-- CMD"})
        CHECK(help_text().find(option) != std::string::npos);
}

TEST_CASE("each wrong usage has its message") {
    using Catch::Contains;
    CHECK_THAT(error_message({}), Contains("specify a destination"));
    CHECK(error_message({"--listen", "--server", "x"}) == "--server, --listen and --output exclude each other");
    CHECK(error_message({"--listen", "--output", "x"}) == "--server, --listen and --output exclude each other");
    CHECK(error_message({"--output", "x"}) == "--output needs a target: --pid PID, --name COMM, --all or -- CMD");
    CHECK_THAT(error_message({"--output", "-", "--", "ls"}), Contains("cannot be used with -- CMD"));
    CHECK_THAT(error_message({"--output", "-", "--pid", "1"}, true), Contains("terminal"));
    CHECK(parse({"--output", "x", "--pid", "1"}, true).has_value());
    CHECK(error_message({"--listen", "--pid", "1", "--name", "x"}) == "--pid, --name and -- CMD exclude each other");
    CHECK(error_message({"--listen", "--pid", "1", "--", "x"}) == "--pid, --name and -- CMD exclude each other");
    CHECK(error_message({"--listen", "--pid", "1", "--pid", "2"}) ==
          "--pid is given once, with commas between the processes");
    CHECK(error_message({"--listen", "--cpus", "0", "--all", "--cpus=1"}) ==
          "--cpus is given once, with commas between the CPUs");
    CHECK(error_message({"--listen", "--container", "a", "--container", "a"}) ==
          "--container is given once; to give several, repeat --cgroup");
    CHECK(error_message({"--output", "x", "--delay", "1", "--delay", "2", "--", "x"}) == "--delay is given once");
    CHECK(error_message({"--listen", "--allow-pid", "1", "--allow-pid", "2"}) ==
          "--allow-pid is given once, with commas between the processes");
    CHECK(error_message({"--listen", "--allow-user", "a", "--allow-user", "b"}) ==
          "--allow-user is given once, with commas between the names");
    CHECK(error_message({"--listen", "--allow-command", "/usr/bin/a"}) ==
          "--allow-command takes the file names of executables, without their folders");
    CHECK(error_message({"--listen", "--allow-command", "a", "--allow-command", "b"}) ==
          "--allow-command is given once, with commas between the names");
    CHECK(parse({"--listen", "--cgroup", "a", "--cgroup", "b", "--frequency", "9", "--frequency", "99"}).has_value());
    CHECK(error_message({"--listen", "--frequency", "9", "--count", "9"}) ==
          "--frequency and --count exclude each other");
    CHECK(error_message({"--server", "h", "--bind", "0.0.0.0"}) == "--bind needs --listen");
    CHECK(error_message({"--listen", "--pair", "a", "--pair-file", "b"}) ==
          "--pair and --pair-file exclude each other");
    const std::string needs = "--pair, --pair-file and --insecure need --server or --listen";
    CHECK(error_message({"--output", "x", "--pid", "1", "--pair", "a"}) == needs);
    CHECK(error_message({"--output", "x", "--pid", "1", "--pair-file", "a"}) == needs);
    CHECK(error_message({"--output", "x", "--pid", "1", "--insecure"}) == needs);
    CHECK_THAT(error_message({"--server", "h", "--insecure", "--pair", "a"}), Contains("--insecure excludes --pair"));
    CHECK(parse({"--listen", "--insecure", "--pair-file", "a"}).has_value());
    CHECK(error_message({"--server", "h", "--delay", "5"}) == "--delay needs a command to launch: -- CMD");
    CHECK(error_message({"--server", "h", "--force"}) == "--force needs --output FILE");
    CHECK_THAT(error_message({"--server", "h", "--capture", "c"}), Contains("--capture needs a target"));
    CHECK_THAT(error_message({"--output", "c", "--pid", "1", "--capture", "c"}), Contains("a file each"));
    CHECK_THAT(error_message({"--output", "c", "--pid", "1", "--capture", ""}), Contains("needs a file name"));
    CHECK(parse({"--server", "h", "--pid", "1", "--capture", "c"})->options.capture == "c");
    CHECK(error_message({"--server", "h:9999"}) == "--server takes a host without port: --server h --port 9999");
    CHECK(error_message({"--listen", "--"}) == "no command after --");
    CHECK_THAT(error_message({"--listen", "stray"}), Contains("unexpected argument 'stray'"));
    CHECK_THAT(error_message({"--listen", "--bogus"}), Contains("unknown option --bogus"));
    CHECK_THAT(error_message({"--listen", "-x"}), Contains("unknown option"));
    CHECK_THAT(error_message({"--server"}), Contains("--server needs a value"));
    CHECK(error_message({"--listen=x"}) == "--listen=x takes no value");
    CHECK(error_message({"--listen", "--unwind", "x"}) ==
          "unknown unwind mode 'x'; modes are auto, fp, dwarf, lbr and hybrid");
    for (const char* size : {"65529", "65535", "65536", "64K", "1023", "1G"})
        CHECK(error_message({"--listen", "--stack-size", size}) ==
              "--stack-size must be 1024 to 65528 bytes (with K, M or G), not '" + std::string(size) + "'");
    CHECK_THAT(error_message({"--listen", "--events", ""}), Contains("--events needs"));
    CHECK_THAT(error_message({"--listen", "--name", ""}), Contains("--name needs"));
    CHECK_THAT(error_message({"--listen", "--ring-pages", "3"}), Contains("power of two"));
}

TEST_CASE("numbers are whole, in range, and nothing else") {
    struct Range {
        const char* option;
        const char* lowest;
        const char* highest;
        const char* below;
        const char* above;
    };
    for (const Range& range :
         {Range{"--port", "1", "65535", "0", "65536"}, Range{"--frequency", "1", "100000", "0", "100001"},
          Range{"--count", "1", "4611686018427387904", "0", "4611686018427387905"},
          Range{"--duration", "1", "2678400", "0", "2678401"}, Range{"--rounds", "1", "1000000", "0", "1000001"},
          Range{"--interval", "10", "10000", "9", "10001"}, Range{"--pid", "1", "4194304", "0", "4194305"},
          Range{"--max-depth", "16", "4096", "15", "4097"}, Range{"--unwind-memory", "4", "1024", "3", "1025"},
          Range{"--stack-size", "1024", "65528", "1023", "65529"},
          Range{"--spool", "65536", "1G", "65535", "1073741825"},
          Range{"--module-cap", "0", "4G", "5G", "4294967297"}}) {
        INFO(range.option);
        CHECK(parse({"--listen", range.option, range.lowest}).has_value());
        CHECK(parse({"--listen", range.option, range.highest}).has_value());
        for (const char* bad :
             {range.below, range.above, "", "x", "1x", "-1", "1.5", " 1", "99999999999999999999999", "0x10"})
            CHECK_FALSE(parse({"--listen", range.option, bad}).has_value());
    }
    CHECK(error_message({"--listen", "--frequency", "0"}) ==
          "--frequency must be a whole number from 1 to 100000, not '0'");
    CHECK_FALSE(parse({"--listen", "--pid", "1,,2"}).has_value());
    CHECK_FALSE(parse({"--listen", "--pid", "1,"}).has_value());
    CHECK(error_message({"--listen", "--spool", "1M2"}) ==
          "--spool must be 65536 to 1073741824 bytes (with K, M or G), not '1M2'");
    CHECK_FALSE(parse({"--listen", "--spool", "17179869184G"}).has_value());
}

TEST_CASE("the interval of health readings") {
    const Options usual = accepted({"--listen"});
    CHECK(usual.health.enabled);
    CHECK(usual.health.interval_s == 2);
    CHECK(usual.health.network);
    CHECK_FALSE(usual.health.disk);
    CHECK_FALSE(usual.health.threads);
    CHECK(accepted({"--listen", "--metrics", "60"}).health.interval_s == 60);
    CHECK(accepted({"--listen", "--metrics", "1"}).health.interval_s == 1);
    CHECK_FALSE(accepted({"--listen", "--metrics", "off"}).health.enabled);
    CHECK(accepted({"--listen", "--metrics", "off", "--metrics", "5"}).health.enabled);
    for (const char* wrong : {"0", "61", "-1", "1.5", "", "on", "2s"})
        CHECK(error_message({"--listen", "--metrics", wrong}) ==
              std::string("--metrics must be 1 to 60 seconds or off, not '") + wrong + "'");
}

TEST_CASE("counters, and counting without sampling") {
    using Catch::Contains;
    CHECK(accepted({"--listen"}).settings.stat == "default");
    CHECK(accepted({"--listen"}).settings.samples());
    CHECK(accepted({"--listen", "--stat", "none"}).settings.stat == "none");
    const Options only = accepted({"--server", "h", "--events", "none", "--stat", "cycles,task-clock"});
    CHECK(only.settings.stat == "cycles,task-clock");
    CHECK_FALSE(only.settings.samples());
    CHECK_FALSE(only.prints_table());
    // A table may go to a terminal, also together with a command's output.
    const auto table = parse({"--output", "-", "--events", "none", "--", "ls"}, true);
    REQUIRE(table.has_value());
    CHECK(table->options.prints_table());
    CHECK_FALSE(accepted({"--output", "x", "--events", "none", "--pid", "1"}).prints_table());
    CHECK_FALSE(accepted({"--output", "-", "--pid", "1"}).prints_table());
    CHECK(error_message({"--listen", "--events", "none", "--stat", "none"}) ==
          "--events none counts without sampling; with --stat none nothing is left to do");
    CHECK_THAT(error_message({"--listen", "--stat", ""}), Contains("--stat needs"));
}

TEST_CASE("a command has 256 pids") {
    std::string pids = "1";
    for (int pid = 2; pid <= 256; ++pid) pids += "," + std::to_string(pid);
    CHECK(accepted({"--listen", "--pid", pids.c_str()}).pids.size() == 256);
    CHECK(accepted({"--listen", "--pid", (pids + ",7").c_str()}).pids.size() == 256);  // one pid is given twice
    CHECK(error_message({"--listen", "--pid", (pids + ",257").c_str()}) == "--pid takes at most 256 processes");
}
