// Replies and refusals of each command, with the field names that existing servers of this protocol use.
#include "agent/commands.h"

#include <catch2/catch.hpp>
#include <fmt/format.h>

#include "fake_control.h"

using namespace flamewire;
using namespace flamewire::agent;

namespace {

struct Agent {
    FakeControl control;
    Machine machine;

    Agent() {
        machine.host = "board";
        machine.arch = "aarch64";
        machine.kernel_release = "6.1.0";
    }

    rapidjson::Document ask(const std::string& name, const std::string& args = "{}") {
        auto command = wire::parse_command(R"({"id":"0123456789ab","cmd":")" + name + R"(","args":)" + args + "}");
        REQUIRE(command.has_value());
        auto reply = wire::parse_object(handle_command(*command, machine, control));
        REQUIRE(reply.has_value());
        CHECK(wire::text_member(*reply, "id") == "0123456789ab");
        return std::move(*reply);
    }

    std::string error(const std::string& name, const std::string& args = "{}") {
        const rapidjson::Document reply = ask(name, args);
        REQUIRE(reply["ok"].IsFalse());
        return wire::text_member(reply, "error");
    }

    rapidjson::Document good(const std::string& name, const std::string& args = "{}") {
        rapidjson::Document reply = ask(name, args);
        INFO(wire::text_member(reply, "error"));
        REQUIRE(reply["ok"].IsTrue());
        return reply;
    }
};

}  // namespace

TEST_CASE("ping and unknown commands") {
    Agent agent;
    CHECK(agent.good("ping").MemberCount() == 2);
    CHECK(agent.error("frobnicate") == "unknown command: frobnicate");
}

TEST_CASE("status of an idle agent") {
    Agent agent;
    agent.control.report.waiting_for = "demo";
    const auto reply = agent.good("status");
    CHECK(wire::text_member(reply, "state") == "idle");
    CHECK(reply["pid"].IsNull());
    CHECK(reply["frequency"].GetUint() == 99);
    CHECK(reply["duration"].GetUint() == 8);
    CHECK(wire::text_member(reply, "agent_version") == FLAMEWIRE_VERSION);
    CHECK(wire::text_member(reply["platform"], "arch") == "aarch64");
    CHECK(wire::text_member(reply["platform"], "kernel") == "6.1.0");
    CHECK(reply["platform"]["perf_event_paranoid"].GetInt() == 2);
    CHECK(wire::texts_member(reply["capabilities"], "record_events") ==
          std::vector<std::string>{"cpu-clock", "page-faults"});
    CHECK(wire::texts_member(reply["capabilities"], "stat_only_events").empty());
    CHECK(wire::text_member(reply["capabilities"], "callgraph_method") == "auto");
    CHECK(wire::texts_member(reply["capabilities"], "unwind_modes") == std::vector<std::string>{"auto", "fp", "dwarf"});
    CHECK(wire::text_member(reply, "unwind") == "auto");
    CHECK(reply["stack_size"].GetUint() == 16'384);
    CHECK(reply["max_depth"].GetUint() == 1'024);
    CHECK(reply["unwind_memory"].GetUint64() == 33'554'432);
    CHECK_FALSE(reply.HasMember("unwind_processes"));
    CHECK(wire::texts_member(reply, "events").size() == 2);
    CHECK(wire::text_member(reply, "event_list").empty());
    CHECK(reply["kernel"].IsTrue());
    CHECK(wire::text_member(reply, "waiting_for") == "demo");
    agent.control.report.settings.events = "off-cpu,sched:sched_switch";
    agent.control.report.settings.kernel = false;
    const auto status = agent.good("status");
    CHECK(wire::text_member(status, "event_list") == "off-cpu,sched:sched_switch");
    CHECK(status["kernel"].IsFalse());
}

TEST_CASE("status while profiling") {
    Agent agent;
    agent.control.report.state = State::paused;
    agent.control.report.running = agent.control.running_with({}, {42, 43});
    agent.control.report.accounting.samples_read = 1000;
    agent.control.report.accounting.samples_lost = 3;
    agent.control.report.accounting.ring_bytes = 8'650'752;
    agent.control.report.running->unwind_processes = {
        {42, "demo", wire::StackMode::dwarf, "no frame pointers", 10, 4, 3, 2, 0, 1, 170, 163'840},
        {43, "shell", wire::StackMode::fp, "frame pointers", 1, 0, 0, 0, 1, 0, 9, 0}};
    const auto reply = agent.good("status");
    CHECK(wire::text_member(reply, "state") == "paused");
    CHECK(reply["pid"].GetUint() == 42);
    CHECK(reply["pids"].Size() == 2);
    CHECK(wire::text_member(reply, "target") == "pid 42 (demo)");
    CHECK(wire::text_member(reply, "recording") == "ab000000000000000000000000000001");
    CHECK(reply["samples_read"].GetUint64() == 1000);
    CHECK(reply["samples_lost"].GetUint64() == 3);
    CHECK(reply["ring_bytes"].GetUint64() == 8'650'752);
    REQUIRE(reply["unwind_processes"].Size() == 2);
    const auto& process = reply["unwind_processes"][0];
    CHECK(wire::text_member(process, "comm") == "demo");
    CHECK(wire::text_member(process, "mode") == "dwarf");
    CHECK(wire::text_member(process, "why") == "no frame pointers");
    const std::vector<std::pair<const char*, unsigned>> expected{
        {"pid", 42},     {"samples", 10}, {"whole", 4},    {"joined", 3},           {"truncated", 2},
        {"open_end", 0}, {"stopped", 1},  {"frames", 170}, {"stack_bytes", 163'840}};
    for (const auto& [name, value] : expected) {
        INFO(name);
        CHECK(process[name].GetUint64() == value);
    }
    CHECK(wire::text_member(reply["unwind_processes"][1], "mode") == "fp");
    CHECK(reply["unwind_processes"][1]["open_end"].GetUint64() == 1);
}

TEST_CASE("start applies its arguments, and the reply has the effective values") {
    Agent agent;
    const auto reply =
        agent.good("start", R"({"pid":42,"frequency":4999,"duration":3,"events":["cpu-clock:u","page-faults"],
                                               "kernel":false,"interval":100,"callgraph":"fp"})");
    const StartRequest& request = agent.control.started;
    CHECK(request.pids == std::vector<std::uint32_t>{42});
    CHECK(request.change.frequency_hz == 4999U);
    CHECK(request.change.duration_s == 3U);
    CHECK(request.change.interval_ms == 100U);
    CHECK(request.change.events == "cpu-clock:u,page-faults");
    CHECK(request.change.kernel == false);
    CHECK_FALSE(request.change.period.has_value());
    CHECK(reply["pid"].GetUint() == 42);
    CHECK(reply["frequency"].GetUint() == 4999);
    CHECK(reply["effective_frequency"].GetUint() == 1000);
    CHECK(reply["duration"].GetUint() == 3);
    CHECK(wire::texts_member(reply, "events") == std::vector<std::string>{"cpu-clock"});
    CHECK(wire::text_member(reply, "callgraph") == "fp");
    CHECK(wire::text_member(reply, "mode") == "continuous");
    REQUIRE(reply["notices"].Size() == 1);
    CHECK(wire::text_member(reply["notices"][0], "remedy") == "sysctl -w a=1");
}

TEST_CASE("the whole system, CPUs, control groups and containers") {
    Agent agent;
    agent.good("start", R"({"all":true,"cpus":"0-2,5"})");
    CHECK(agent.control.started.wide == WideTarget{true, {0, 1, 2, 5}, {}, {}});
    CHECK(agent.control.started.pids.empty());
    agent.good("start", R"({"cpus":[3,1,3,3],"cgroups":["/a","b"],"cgroup":"c","container":"abc"})");
    CHECK(agent.control.started.wide == WideTarget{false, {1, 3}, {"/a", "b", "c"}, "abc"});
    CHECK(agent.error("start", R"({"all":false})") == "pid required");
    CHECK(agent.error("start", R"({"all":true,"name":"x"})") ==
          "all, cpus, cgroups and container exclude pid and name");
    CHECK(agent.error("start", R"({"all":1})") == "all must be true or false");
    CHECK(agent.error("start", R"({"cpus":"x"})") == "cpus must be a list of CPUs such as 0-3,6, not 'x'");
    CHECK(agent.error("start", R"({"cpus":[70000]})") == "cpus must be a whole number from 0 to 65535");
    CHECK(agent.error("start", R"({"cgroups":"x"})") == "cgroups must be a list of at most 64 paths");
    CHECK(agent.error("start", R"({"cgroups":[""]})") == "cgroups must be a list of paths");
    CHECK(agent.error("start", R"({"all":true,"container":"x"})") ==
          "all means the whole system: give it without a control group or container");
}

TEST_CASE("start by several pids and by name") {
    Agent agent;
    agent.good("start", R"({"pids":[7,8,7],"pid":9,"count":100000})");
    CHECK(agent.control.started.pids == std::vector<std::uint32_t>{9, 7, 8});
    CHECK(agent.control.started.change.period == 100'000U);
    agent.good("start", R"({"name":"demo","unwind":null,"callgraph":""})");
    CHECK(agent.control.started.name == "demo");
    CHECK_FALSE(agent.control.started.change.unwind.has_value());
}

TEST_CASE("start and configure accept a stack mode") {
    Agent agent;
    const auto reply = agent.good("start", R"({"pid":42,"unwind":"dwarf","stack_size":8193,"max_depth":2000})");
    CHECK(agent.control.started.change.unwind == "dwarf");
    CHECK(agent.control.started.change.stack_bytes == 8'200U);
    CHECK(agent.control.started.change.max_depth == 2'000U);
    CHECK(wire::text_member(reply, "unwind") == "dwarf");
    CHECK(wire::text_member(reply, "callgraph") == "dwarf");
    CHECK(reply["stack_size"].GetUint() == 8'200);
    CHECK(reply["max_depth"].GetUint() == 2'000);
    agent.good("configure", R"({"callgraph":"hybrid"})");
    CHECK(agent.control.change.unwind == "hybrid");
    CHECK_FALSE(agent.control.change.stack_bytes.has_value());
    CHECK_FALSE(agent.control.report.settings.max_depth_given);
    agent.good("configure", R"({"max_depth":64})");
    CHECK(agent.control.report.settings.max_depth == 64);
    CHECK(agent.control.report.settings.max_depth_given);
    CHECK(agent.control.report.settings.unwind == "hybrid");

    CHECK(
        agent.error("start", R"({"pid":1,"unwind":"lbr"})") ==
        "lbr needs a CPU that records call stacks (Intel) and whose counters can be used; available: auto, fp, dwarf");
    CHECK(agent.error("configure", R"({"unwind":"lbr"})").starts_with("lbr needs a CPU"));
    CHECK(agent.error("start", R"({"pid":1,"unwind":"libunwind"})") ==
          "unknown unwind mode 'libunwind'; modes are auto, fp, dwarf, lbr and hybrid");
    CHECK(agent.error("start", R"({"pid":1,"stack_size":65536})") ==
          "stack_size must be a whole number from 1024 to 65528");
    CHECK(agent.error("start", R"({"pid":1,"max_depth":15})") == "max_depth must be a whole number from 16 to 4096");
    agent.control.known.user_stacks = false;
    agent.control.known.unwind_modes = {"auto", "fp"};
    CHECK(agent.error("start", R"({"pid":1,"unwind":"dwarf"})") ==
          "dwarf needs a kernel that hands out user registers and stacks with samples; available: auto, fp");
}

TEST_CASE("start refuses wrong arguments with a message") {
    Agent agent;
    CHECK(agent.error("start") == "pid required");
    CHECK(agent.error("start", R"({"pid":0})") == "pid must be a whole number from 1 to 4194304");
    CHECK(agent.error("start", R"({"pid":"42"})") == "pid must be a whole number from 1 to 4194304");
    CHECK(agent.error("start", R"({"pid":-1})") == "pid must be a whole number from 1 to 4194304");
    CHECK(agent.error("start", R"({"pid":4.5})") == "pid must be a whole number from 1 to 4194304");
    CHECK(agent.error("start", R"({"pids":{}})") == "pids must be a list of at most 256 process ids");
    CHECK(agent.error("start", R"({"pid":1,"name":"x"})") == "pid and name exclude each other");
    CHECK(agent.error("start", R"({"pid":1,"frequency":9,"count":9})") == "frequency and count exclude each other");
    CHECK(agent.error("start", R"({"pid":1,"frequency":0})") == "frequency must be a whole number from 1 to 100000");
    CHECK(agent.error("start", R"({"pid":1,"events":[1]})") == "events must be a list of event names");
    CHECK(agent.error("start", R"({"pid":1,"events":7})") == "events must be a list of event names");
    CHECK(agent.error("start", R"({"pid":1,"kernel":1})") == "kernel must be true or false");
    for (const char* events : {"cpu/config=0x3c/", "cycles,cpu/event=1, config1 = 7/", "cpu/config2=1/u"})
        for (const char* name : {"events", "stat"})
            CHECK(agent.error("start", fmt::format(R"({{"pid":1,"{}":"{}"}})", name, events))
                      .contains(": only the agent's own options take config="));
    CHECK(agent.control.calls.empty());
    agent.good("start", R"({"pid":1,"events":["sys:name/config == 3/","cpu/event=1/"]})");
    agent.control.report.settings.events = "cpu/config=0x3c/";
    agent.good("start", R"({"pid":1,"events":"cpu/config=0x3c/"})");
    agent.control.calls.clear();

    agent.control.refuse = Error{ErrorCode::not_found, 0, "process 1 not found"};
    CHECK(agent.error("start", R"({"pid":1})") == "process 1 not found");
    agent.control.report.state = State::profiling;
    CHECK(agent.error("start", R"({"pid":1})") == "already profiling");
    agent.control.report.state = State::paused;
    CHECK(agent.error("start", R"({"pid":1})") == "already profiling (paused — use resume or stop)");
    CHECK(agent.control.calls.size() == 1);
}

TEST_CASE("stop, pause, resume and resolve_kernel") {
    Agent agent;
    for (const char* name : {"stop", "pause", "resume", "resolve_kernel"}) {
        agent.good(name);
        CHECK(agent.control.calls.back() == name);
    }
    agent.control.refuse = Error{ErrorCode::busy, 0, "not profiling"};
    for (const char* name : {"stop", "pause", "resume", "resolve_kernel"}) CHECK(agent.error(name) == "not profiling");
}

TEST_CASE("the reply of configure has the effective values and when they apply") {
    Agent agent;
    const auto later =
        agent.good("configure", R"({"frequency":499,"duration":5,"events":"page-faults","kernel":false})");
    CHECK(later["frequency"].GetUint() == 499);
    CHECK(later["duration"].GetUint() == 5);
    CHECK(wire::text_member(later, "event_list") == "page-faults");
    CHECK(later["kernel"].IsFalse());
    CHECK(wire::text_member(later, "applied") == "at the next start");

    agent.control.report.state = State::profiling;
    const auto now = agent.good("configure", R"({"frequency":4999})");
    CHECK(now["frequency"].GetUint() == 4999);
    CHECK(now["effective_frequency"].GetUint() == 1000);
    CHECK(wire::text_member(now, "applied") == "now");
    CHECK(agent.good("configure", R"({"count":7})")["frequency"].GetUint() == 0);
    agent.control.report.settings.period = 7;
    CHECK(agent.good("configure", R"({"frequency":10})")["count"].GetUint() == 0);
}

TEST_CASE("configure changes the target") {
    Agent agent;
    agent.control.report.state = State::profiling;
    agent.good("configure", R"({"pid":77})");
    CHECK(agent.control.change.pids == std::vector<std::uint32_t>{77});
    agent.good("configure", R"({"pids":[5,6],"frequency":10})");
    CHECK(agent.control.change.pids == std::vector<std::uint32_t>{5, 6});
    agent.good("configure", R"({"frequency":10})");
    CHECK(agent.control.change.pids.empty());
    CHECK(agent.error("configure", R"({"pid":0})").starts_with("pid must be"));
    agent.control.refuse = Error{ErrorCode::not_found, 0, "process 9 not found"};
    CHECK(agent.error("configure", R"({"pid":9})") == "process 9 not found");
}

TEST_CASE("configure_metrics reads settings, changes the given ones, and refuses wrong ones with a message") {
    Agent agent;
    const auto usual = agent.good("configure_metrics");
    CHECK(usual.MemberCount() == 7);
    CHECK(usual["metrics_enabled"].IsTrue());
    CHECK(usual["interval"].GetUint() == 2);
    CHECK(usual["network"].IsTrue());
    CHECK(usual["disk"].IsFalse());
    CHECK(usual["threads"].IsFalse());
    const auto other = agent.good("configure_metrics", R"({"interval":60,"network":false,"disk":true,"threads":null})");
    CHECK(other["interval"].GetUint() == 60);
    CHECK(other["network"].IsFalse());
    CHECK(other["disk"].IsTrue());
    CHECK(other["threads"].IsFalse());
    CHECK(agent.good("configure_metrics", R"({"enabled":false,"threads":true})")["metrics_enabled"].IsFalse());
    const HealthSettings before = agent.control.health;
    CHECK(before == HealthSettings{false, 60, false, true, true});
    CHECK(agent.error("configure_metrics", R"({"disk":false,"interval":0})") ==
          "interval must be a whole number from 1 to 60");
    CHECK(agent.error("configure_metrics", R"({"interval":61})") == "interval must be a whole number from 1 to 60");
    CHECK(agent.error("configure_metrics", R"({"interval":2.5})") == "interval must be a whole number from 1 to 60");
    CHECK(agent.error("configure_metrics", R"({"enabled":1})") == "enabled must be true or false");
    CHECK(agent.error("configure_metrics", R"({"threads":"yes"})") == "threads must be true or false");
    CHECK(agent.control.health == before);
}

TEST_CASE("counters: start and configure choose them, and the reply has their status") {
    Agent agent;
    const auto reply = agent.good("start", R"({"pid":42,"events":"none","stat":["page-faults","task-clock"]})");
    CHECK(agent.control.started.change.events == "none");
    CHECK(agent.control.started.change.stat == "page-faults,task-clock");
    CHECK(wire::text_member(reply, "stat") == "page-faults,task-clock");
    const auto& counters = reply["counters"];
    REQUIRE(counters.Size() == 2);
    CHECK(wire::text_member(counters[0], "name") == "cycles");
    CHECK(wire::text_member(counters[0], "status") == "unsupported");
    CHECK_FALSE(counters[0].HasMember("part"));
    CHECK(wire::text_member(counters[1], "part") == "cpu_core");
    CHECK(wire::text_member(counters[1], "status") == "counted");
    CHECK(wire::text_member(reply, "counters_by") == "none");
    agent.good("configure", R"({"stat":"none"})");
    CHECK(agent.control.change.stat == "none");
    CHECK(agent.control.report.settings.stat == "none");
    CHECK(wire::text_member(agent.good("status"), "stat") == "none");
    CHECK(agent.error("configure", R"({"stat":7})") == "stat must be a list of event names");
    CHECK(agent.error("start", R"({"pid":1,"stat":["cycles",""]})") == "stat must be a list of event names");
}

TEST_CASE("counters by thread and by CPU on demand") {
    Agent agent;
    CHECK(wire::text_member(agent.good("counters", R"({"by":"thread"})"), "counters_by") == "thread");
    CHECK(wire::text_member(agent.good("counters", R"({"by":"cpu"})"), "counters_by") == "cpu");
    CHECK(wire::text_member(agent.good("counters", R"({"by":"none"})"), "counters_by") == "none");
    CHECK(agent.control.calls == std::vector<std::string>{"count_by 1", "count_by 2", "count_by 0"});
    for (const auto* args : {"{}", R"({"by":""})", R"({"by":"total"})"})
        CHECK(agent.error("counters", args) == "by must be none, thread or cpu");
    CHECK(agent.error("counters", R"({"by":1})") == "by must be a string");
    agent.control.refuse = Error{ErrorCode::busy, 0, "not profiling"};
    CHECK(agent.error("counters", R"({"by":"cpu"})") == "not profiling");
}

TEST_CASE("list_processes") {
    Agent agent;
    agent.control.processes = {{4242, 1, "alice", "de\xFFmo", "/app/demo --fast", "0123456789ab", 99.96},
                               {7, 7, "root", "init", "", "", 0.04}};
    const auto reply = agent.good("list_processes");
    REQUIRE(reply["processes"].Size() == 2);
    const auto& first = reply["processes"][0];
    CHECK(first["pid"].GetUint() == 4242);
    CHECK(first["ns_pid"].GetUint() == 1);
    CHECK(wire::text_member(first, "user") == "alice");
    CHECK(wire::text_member(first, "comm") == "de\xEF\xBF\xBDmo");  // not valid UTF-8, but the reply is still JSON
    CHECK(wire::text_member(first, "cmdline") == "/app/demo --fast");
    CHECK(wire::text_member(first, "container") == "0123456789ab");
    CHECK(first["cpu"].GetDouble() == Approx(100.0));
    CHECK(reply["processes"][1]["cpu"].GetDouble() == Approx(0.0));
}

TEST_CASE("list_events") {
    Agent agent;
    agent.control.events.events = {{"malloc", 0x1234, 0, nullptr}, {"str\xFFlen", 7, 0, "selects one"}};
    agent.control.events.files = {"/lib/libc.so.6"};
    agent.control.events.total = 9;
    const auto reply = agent.good("list_events", R"({"kind":"function","search":"m","file":"libc","pids":[7,8]})");
    CHECK(agent.control.listed_query.kind == EventKind::function);
    CHECK(agent.control.listed_query.search == "m");
    CHECK(agent.control.listed_query.file == "libc");
    CHECK(agent.control.listed_query.pids == std::vector<std::uint32_t>{7, 8});
    CHECK(reply["total"].GetUint() == 9);
    CHECK(reply["kernel_functions"].IsFalse());
    CHECK_FALSE(reply.HasMember("description"));
    CHECK(std::string(reply["files"][0].GetString()) == "/lib/libc.so.6");
    REQUIRE(reply["events"].Size() == 2);
    CHECK(wire::text_member(reply["events"][0], "name") == "malloc");
    CHECK(reply["events"][0]["offset"].GetUint() == 0x1234);
    CHECK_FALSE(reply["events"][0].HasMember("problem"));
    CHECK(wire::text_member(reply["events"][1], "name") == "str\xEF\xBF\xBDlen");
    CHECK(wire::text_member(reply["events"][1], "problem") == "selects one");

    agent.control.events.description = "a: b\n";
    CHECK(wire::text_member(agent.good("list_events", R"({"describe":"a:b","container":"x"})"), "description") ==
          "a: b\n");
    CHECK(agent.control.listed_query.describe == "a:b");
    CHECK(agent.control.listed_query.wide.container == "x");

    CHECK(agent.error("list_events") == "kind must be tracepoint, function, usdt, kernel-function or file");
    CHECK(agent.error("list_events", R"({"kind":"usdt"})") == "file required");
    CHECK(agent.error("list_events", R"({"kind":7})") == "kind must be a string");
    CHECK(agent.error("list_events", R"({"kind":"file","pid":7,"all":true})") ==
          "all, cpus, cgroups and container exclude pid");
    const std::string tracepoints = R"({"kind":"tracepoint","search":")";
    agent.good("list_events", tracepoints + std::string(256, 'x') + "\"}");
    CHECK(agent.error("list_events", tracepoints + std::string(257, 'x') + "\"}") ==
          "search may have at most 256 bytes");
    agent.control.refuse = Error{ErrorCode::permission, 0, "not that one"};
    CHECK(agent.error("list_events", R"({"kind":"tracepoint"})") == "not that one");
}

TEST_CASE("a list of events with long names ends early") {
    Agent agent;
    for (int i = 0; i < 100; ++i) agent.control.events.events.push_back({std::string(65'000, 'x'), 0, 0, nullptr});
    agent.control.events.total = 100;
    const auto reply = agent.good("list_events", R"({"kind":"function","file":"x"})");
    CHECK(reply["events"].Size() == 8);
    CHECK(reply["total"].GetUint() == 100);
}

TEST_CASE("verify_pid") {
    Agent agent;
    CHECK(agent.error("verify_pid") == "pid required");
    auto reply = agent.good("verify_pid", R"({"pid":77})");
    CHECK(agent.control.verified_pid == 77);
    CHECK(reply["exists"].IsFalse());
    CHECK(reply["permitted"].IsFalse());
    CHECK(reply["pid"].GetUint() == 77);
    agent.control.check.exists = true;
    agent.control.check.identity = {"demo", "/app/demo"};
    reply = agent.good("verify_pid", R"({"pid":77})");
    CHECK(reply["exists"].IsTrue());
    CHECK(reply["permitted"].IsTrue());
    CHECK(reply["problem"].IsNull());
    CHECK(wire::text_member(reply["info"], "comm") == "demo");
    CHECK(wire::text_member(reply["info"], "cmdline") == "/app/demo");
    agent.control.check.refused = Error{ErrorCode::permission, 13, "not yours"};
    reply = agent.good("verify_pid", R"({"pid":77})");
    CHECK(reply["permitted"].IsFalse());
    CHECK(wire::text_member(reply, "problem") == "not yours");
}

TEST_CASE("reprobe") {
    Agent agent;
    auto reply = agent.good("reprobe");
    CHECK(wire::texts_member(reply, "record_events") == std::vector<std::string>{"cpu-clock", "page-faults"});
    CHECK(reply["pipe_mode"].IsTrue());
    CHECK(reply["findings"].Empty());
    agent.control.known.diagnostics = {{"event", "cycles", false, "no cycles", "a remedy"}};
    reply = agent.good("reprobe");
    REQUIRE(reply["findings"].Size() == 1);
    CHECK(wire::text_member(agent.good("status")["capabilities"]["findings"][0], "remedy") == "a remedy");
    CHECK_FALSE(reply["findings"][0]["works"].GetBool());
    CHECK(agent.error("reprobe", R"({"pid":5})") == "process 5 not found");
    agent.control.report.state = State::profiling;
    CHECK(agent.error("reprobe") == "cannot reprobe while profiling — stop first");
}

TEST_CASE("slow commands are marked as such") {
    for (const char* name : {"list_processes", "list_events", "reprobe", "verify_pid"}) CHECK(is_slow(name));
    for (const char* name : {"ping", "status", "start", "stop", "pause", "resume", "configure", "resolve_kernel", "x"})
        CHECK_FALSE(is_slow(name));
}

TEST_CASE("start takes 256 pids") {
    Agent agent;
    std::string pids = "1";
    for (int pid = 2; pid <= 256; ++pid) pids += "," + std::to_string(pid);
    agent.good("start", R"({"pids":[)" + pids + "]}");
    CHECK(agent.control.started.pids.size() == 256);
    CHECK(agent.error("start", R"({"pids":[)" + pids + ",257]}") == "pids must be a list of at most 256 process ids");
}
