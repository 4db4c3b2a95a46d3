// Files of Chrome, Node.js and V8. Expected lines are added up by hand: a microsecond is 1000 ns.
#include <catch2/catch.hpp>

#include "imported.h"

namespace flamewire::profile {

TEST_CASE("Chrome traces: begins and ends, whole spans, names of threads") {
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

TEST_CASE("Chrome traces: what does not fit together") {
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

TEST_CASE("V8's CPU profiles, alone and in a trace") {
    const std::string nodes =
        R"x({"id":1,"callFrame":{"functionName":"(root)","url":"","lineNumber":-1},"children":[2,3]},
        {"id":2,"callFrame":{"functionName":"work","url":"file:///a.js","lineNumber":9},"children":[4]},
        {"id":3,"callFrame":{"functionName":"(idle)","url":"","lineNumber":-1}},
        {"id":4,"callFrame":{"functionName":"","url":"file:///b.js","lineNumber":0}})x";
    // Samples stand at 100, 110, 130, 160 us and last until the next one; the last one as long as the one before it.
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
    // A node that is its own caller is no reason to climb for ever.
    const ImportedText ring(R"({"nodes":[{"id":1,"parent":2,"callFrame":{"functionName":"a"}},
        {"id":2,"parent":1,"callFrame":{"functionName":"b"}}],"samples":[1],"timeDeltas":[1]})");
    CHECK(ring.problem.empty());
    CHECK(ring.noted("import-rings"));
}

}  // namespace flamewire::profile
