// Files of Chrome, Node.js and V8. Expected lines are computed by hand: a microsecond is 1000 ns.
#include <catch2/catch.hpp>

#include <set>
#include <utility>

#include "imported.h"

namespace flamewire::profile {

TEST_CASE("Chrome traces: begins and ends, complete spans, thread names") {
    const std::string events = R"(
        {"pid":1,"tid":2,"ph":"B","name":"alpha","ts":0},
        {"pid":1,"tid":2,"ph":"B","name":"beta","ts":1},
        {"pid":1,"tid":2,"ph":"X","name":"gamma","ts":2,"dur":5,"args":{"detail":"x"}},
        {"pid":1,"tid":2,"ph":"X","name":"epsilon","ts":7,"tdur":4},
        {"pid":1,"tid":2,"ph":"E","name":"beta","ts":13},
        {"pid":1,"tid":2,"ph":"E","ts":14},
        {"pid":"1","tid":"3","ph":"X","name":"other","ts":"20000","dur":7},
        {"pid":1,"tid":2,"ph":"M","name":"thread_name","args":{"name":"main"}},
        {"pid":1,"tid":0,"ph":"M","name":"process_name","args":{"name":"app"}},
        {"pid":1,"tid":2,"ph":"I","name":"mark","ts":3})";
    const std::string expected =
        "app;other 7000\n"
        "main;alpha 2000\n"               // 0 to 1, 13 to 14
        "main;alpha;beta 3000\n"          // 1 to 2, 11 to 13
        "main;alpha;beta;epsilon 4000\n"  // 7 to 11
        "main;alpha;beta;gamma 5000\n";   // 2 to 7
    for (const std::string& text :
         {"[" + events + "]", "{\"traceEvents\":[" + events + "]}", "[" + events, "[" + events + ",\n"}) {
        const ImportedText imported(text);
        CHECK(imported.recognised == "chrome");
        CHECK(imported.problem.empty());
        CHECK(imported.events() == "time/ns ");
        CHECK(imported.lines({}, true) == expected);
        CHECK(imported.noted("import-truncated") == (!text.ends_with("]") && !text.ends_with("]}")));
        CHECK(imported.noted("import-events"));
        CHECK(imported.store.end_ns() == import_moment_ns + 30'000'000);
    }
}

TEST_CASE("Chrome traces: events that do not fit together") {
    const ImportedText imported(R"([
        {"pid":1,"tid":2,"ph":"E","name":"never begun","ts":0},
        {"pid":1,"tid":2,"ph":"X","name":"outer","ts":1,"dur":4},
        {"pid":1,"tid":2,"ph":"X","name":"reaches beyond","ts":3,"dur":10},
        {"pid":1,"tid":2,"ph":"B","name":"never ends","ts":20},
        {"pid":1,"tid":2,"ph":"X","name":"in it","ts":22,"dur":1},
        {"ph":7,"ts":{},"pid":[]}, 5, null])");
    CHECK(imported.problem.empty());
    CHECK(imported.lines({}, true).find("never ends 2000\n") != std::string::npos);
    CHECK(imported.lines({}, true).find("outer;reaches beyond 2000\n") != std::string::npos);
    CHECK(imported.noted("import-unmatched"));
    CHECK(ImportedText("[{\"ph\":\"I\",\"ts\":1}]").problem.find("no CPU profile and no events") != std::string::npos);
    CHECK(ImportedText("[{\"ph\":\"X\",\"ts\":1,").problem.find("ends before anything") != std::string::npos);
}

// Searching all open spans for the begin of each end would take 160 billion steps.
TEST_CASE("Chrome traces: many spans of one name that do not end, and many ends of another name") {
    std::string events;
    for (int i = 0; i < 400'000; ++i) events += R"({"ph":"B","ts":1,"name":"a"},)";
    for (int i = 0; i < 400'000; ++i) events += R"({"ph":"E","ts":2,"name":"b"},)";
    const ImportedText imported("[" + events + R"({"ph":"E","ts":9,"name":"a"}])");
    CHECK(imported.problem.empty());
    CHECK(imported.noted("import-unmatched"));
    CHECK(imported.noted("import-deep"));
}

TEST_CASE("Chrome traces: ends by name, without a name, and out of order") {
    const ImportedText imported(R"([
        {"ph":"B","ts":0,"name":"a"}, {"ph":"B","ts":1,"name":"b"}, {"ph":"B","ts":2,"name":"a"},
        {"ph":"E","ts":3,"name":"b"}, {"ph":"E","ts":4}, {"ph":"E","ts":6,"name":"a"}, {"ph":"E","ts":7}])");
    CHECK(imported.problem.empty());
    // The inner a ends at 4 and is truncated by the end of b at 3.
    CHECK(imported.lines({}, true) == "a 4000\na;b 1000\na;b;a 1000\n");
    CHECK(imported.noted("import-unmatched"));
}

TEST_CASE("V8's CPU profiles, alone and in a trace") {
    const std::string nodes =
        R"x({"id":1,"callFrame":{"functionName":"(root)","url":"","lineNumber":-1},"children":[2,3]},
        {"id":2,"callFrame":{"functionName":"work","url":"file:///a.js","lineNumber":9},"children":[4]},
        {"id":3,"callFrame":{"functionName":"(idle)","url":"","lineNumber":-1}},
        {"id":4,"callFrame":{"functionName":"","url":"file:///b.js","lineNumber":0}})x";
    // Samples are at 100, 110, 130 and 160 us. Each lasts until the next one, and the last one as long as the one
    // before it.
    const ImportedText alone("{\"nodes\":[" + nodes +
                             "],\"startTime\":0,\"endTime\":1000,\"samples\":[2,4,3,4],\"timeDeltas\":[100,10,20,30]}");
    CHECK(alone.recognised == "chrome");
    CHECK(alone.problem.empty());
    CHECK(alone.lines({}, true) == "(idle) 30000\nwork 10000\nwork;(anonymous) 50000\n");
    CHECK(alone.function("work")->line == 10);
    CHECK(alone.store.string(alone.function("(anonymous)")->file) == "file:///b.js");
    const ImportedText trace(R"x({"traceEvents":[
        {"pid":5,"tid":6,"ph":"P","id":"0x1","name":"Profile","ts":1,"args":{"data":{"startTime":50}}},
        {"pid":5,"tid":9,"ph":"P","id":"0x1","name":"ProfileChunk","ts":2,"args":{"data":{"cpuProfile":{"nodes":[
            {"id":1,"callFrame":{"functionName":"(root)"}},{"id":2,"parent":1,"callFrame":{"functionName":"work"}}],
            "samples":[2]},"timeDeltas":[5]}}},
        {"pid":5,"tid":9,"ph":"P","id":"0x1","name":"ProfileChunk","ts":3,"args":{"data":{"cpuProfile":{"nodes":[
            {"id":4,"parent":2,"callFrame":{"functionName":"deep"}}],"samples":[4,4]},"timeDeltas":[7,8]}}},
        {"pid":5,"tid":6,"ph":"M","name":"thread_name","args":{"name":"js"}}]})x");
    CHECK(trace.problem.empty());
    CHECK(trace.lines({}, true) == "js;work 7000\njs;work;deep 16000\n");
    REQUIRE(trace.store.threads().size() == 2);
    CHECK(trace.store.threads()[1].tid == 6);
    // The same in one event, as Chrome wrote it until 2016: the tree itself, seconds, and the time of each sample.
    const std::string tree =
        R"x({"head":{"functionName":"(root)","url":"","lineNumber":0,"hitCount":0,"children":[
            {"functionName":"work","url":"file:///a.js","lineNumber":10,"hitCount":1,"children":[
                {"functionName":"","url":"file:///b.js","lineNumber":1,"hitCount":3,"children":[],"id":4}],"id":2},
            {"functionName":"(idle)","hitCount":1,"children":[],"id":3}],"id":1},"startTime":0.0001,"endTime":0.001)x";
    const std::string in_tree = R"("samples":[2,4,3,4],"timestamps":[100,110,130,160]})";
    for (const std::string& text :
         {tree + "," + in_tree,
          R"([{"pid":5,"tid":6,"ph":"I","name":"CpuProfile","ts":1,"args":{"data":{"cpuProfile":)" + tree + "," +
              in_tree + "}}}]"}) {
        const ImportedText old(text);
        CHECK(old.recognised == "chrome");
        CHECK(old.problem.empty());
        CHECK(old.lines({}, true).find("work 10000\n") != std::string::npos);
        CHECK(old.lines({}, true).find("(idle) 30000\n") != std::string::npos);
        CHECK(old.lines({}, true).find("work;(anonymous) 50000\n") != std::string::npos);
        CHECK(old.function("work")->line == 10);
    }
    // Without times, the samples share the total of 900 us. Without samples, the hits share it.
    CHECK(ImportedText(tree + R"(,"samples":[2,4,3]})").lines({}, true) ==
          "(idle) 300000\nwork 300000\nwork;(anonymous) 300000\n");
    CHECK(ImportedText(tree + "}").lines({}, true) == "(idle) 180000\nwork 180000\nwork;(anonymous) 540000\n");
    // Nodes that form a cycle must not cause an endless loop.
    const ImportedText ring(R"({"nodes":[{"id":1,"parent":2,"callFrame":{"functionName":"a"}},
        {"id":2,"parent":1,"callFrame":{"functionName":"b"}}],"samples":[1],"timeDeltas":[1]})");
    CHECK(ring.problem.empty());
    CHECK(ring.noted("import-rings"));
}

TEST_CASE("Chrome traces: ids that are not numbers stay distinct") {
    const ImportedText imported(R"([
        {"pid":"Main","tid":"-1","ph":"X","name":"a","ts":0,"dur":1},
        {"pid":"Main","tid":"worker","ph":"X","name":"b","ts":0,"dur":2},
        {"pid":-1,"tid":-2,"ph":"X","name":"c","ts":0,"dur":3},
        {"pid":1,"tid":-2,"ph":"X","name":"d","ts":0,"dur":4},
        {"pid":"1","tid":2,"ph":"X","name":"e","ts":0,"dur":5},
        {"pid":"Main","tid":"-1","ph":"M","name":"thread_name","args":{"name":"first"}}])");
    CHECK(imported.lines({}, true) == "-2;c 3000\n-2;d 4000\n[unknown];e 5000\nfirst;a 1000\nworker;b 2000\n");
    std::set<std::pair<std::uint32_t, std::uint32_t>> ids;
    for (ThreadId id = 1; id < imported.store.threads().size(); ++id) {
        const Thread& thread = imported.store.threads()[id];
        ids.emplace(thread.pid, thread.tid);
    }
    CHECK(ids.size() == 5);
    CHECK(ids.contains({1, 2}));
    CHECK(imported.noted("import-ids"));
}

TEST_CASE("Chrome traces: spans and the CPU profile of one thread are two events") {
    const ImportedText imported(R"([
        {"pid":5,"tid":6,"ph":"X","name":"task","ts":0,"dur":40},
        {"pid":5,"tid":6,"ph":"P","id":"0x1","name":"Profile","ts":0,"args":{"data":{"startTime":0}}},
        {"pid":5,"tid":6,"ph":"P","id":"0x1","name":"ProfileChunk","ts":2,"args":{"data":{"cpuProfile":{"nodes":[
            {"id":2,"callFrame":{"functionName":"work"}}],"samples":[2,2]},"timeDeltas":[5,10]}}}])");
    CHECK(imported.events() == "cpu-profile/ns time/ns ");
    CHECK(imported.lines("cpu-profile", true) == "[unknown];work 20000\n");
    CHECK(imported.lines("time", true) == "[unknown];task 40000\n");
}

TEST_CASE("Chrome traces: samples next to the events, as Hermes writes them") {
    const ImportedText imported(R"x({"traceEvents":[
        {"name":"thread_name","ph":"M","pid":7512,"ts":"1","tid":"7695","args":{"name":"mqt_js"}}],
        "samples":[{"cpu":"-1","name":"","ts":"1000","pid":7512,"tid":"7695","weight":"1","sf":1},
                   {"ts":"1010","pid":7512,"tid":"7695","sf":"3"},{"ts":"1040","pid":7512,"tid":"7695","sf":2},
                   {"ts":"5","pid":7512,"tid":"8","sf":2}],
        "stackFrames":{"1":{"name":"[root]","category":"root"},
                       "2":{"name":"f(http://host:8081/index.bundle?dev=false:12:3)","parent":1},
                       "3":{"name":"(g)(x)","parent":"2"}}})x");
    CHECK(imported.recognised == "chrome");
    CHECK(imported.problem.empty());
    CHECK(imported.lines({}, true) == "mqt_js;[root] 10000\nmqt_js;[root];f 30000\nmqt_js;[root];f;(g)(x) 30000\n");
    CHECK(imported.function("f")->line == 12);
    CHECK(imported.store.string(imported.function("f")->file) == "http://host:8081/index.bundle?dev=false");
}

}  // namespace flamewire::profile
