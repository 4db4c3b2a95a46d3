// Profiles of the Firefox Profiler, in and out. Expected lines are written by hand.
#include "profile/formats/firefox.h"

#include <catch2/catch.hpp>
#include <rapidjson/document.h>

#include "batch_maker.h"
#include "imported.h"

namespace flamewire::profile {
namespace {

// main calls work, which has tiny inlined; stack 2 is all three.
const std::string tables = R"("stackTable":{"length":3,"prefix":[null,0,1],"frame":[0,1,2]},
    "frameTable":{"length":3,"func":[0,1,2],"line":[null,7,9],"inlineDepth":[0,0,1]},
    "funcTable":{"length":3,"name":[0,1,2],"fileName":[null,3,null],"resource":[0,0,-1]},
    "resourceTable":{"length":1,"lib":[0],"name":[4]},
    "stringArray":["main","work","tiny","work.c","libx.so"])";
const std::string meta = R"({"meta":{"version":24,"preprocessedProfileVersion":44,"product":"App","startTime":5},
    "libs":[{"name":"libx.so","path":"/lib/libx.so","codeId":"00ab"}],)";

}  // namespace

TEST_CASE("Firefox profiles in: tables of a thread") {
    const ImportedText imported(meta + R"("threads":[{"name":"Compositor","pid":"12","tid":13,
        "samples":{"length":4,"stack":[2,1,null,2],"time":[0.5,20.25,30,40],"weight":null,"weightType":"samples"},)" +
                                tables + R"(},{"name":"Tracer","pid":12,"tid":"14",
        "samples":{"length":2,"stack":[0,1],"timeDeltas":[5,10],"weight":[1.5,2],"weightType":"tracing-ms"},)" +
                                tables + "}]}");
    CHECK(imported.recognised == "firefox");
    CHECK(imported.problem.empty());
    CHECK(imported.target == "App");
    CHECK(imported.realtime == 5'000'000);
    CHECK(imported.events() == "samples/samples time/ns ");
    CHECK(imported.lines("samples") == "Compositor 1\nCompositor;main;work 1\nCompositor;main;work;tiny 2\n");
    CHECK(imported.lines("time", true) == "Tracer;main 1500000\nTracer;main;work 2000000\n");
    CHECK(imported.function("tiny")->kind == FrameKind::inlined);
    CHECK(imported.function("work")->line == 7);
    CHECK(imported.module_of("work") == "libx.so");
    CHECK(imported.module_of("tiny").empty());
    REQUIRE(imported.store.threads().size() == 3);
    CHECK(imported.store.threads()[2].tid == 14);
    CHECK(imported.store.end_ns() == import_moment_ns + 50'000'000);
}

TEST_CASE("Firefox profiles in: tables that threads share") {
    const ImportedText imported(meta + R"("shared":{)" + tables + R"(},"threads":[
        {"name":"A","pid":1,"tid":1,"samples":{"stack":[2],"time":[1]}},
        {"name":"B","pid":1,"tid":2,"samples":{"stack":[0,0],"time":[1,2]}}]})");
    CHECK(imported.problem.empty());
    CHECK(imported.lines() == "A;main;work;tiny 1\nB;main 2\n");
}

TEST_CASE("Firefox profiles in: what is wrong") {
    CHECK(ImportedText(meta + R"("threads":[{"name":"A")").problem ==
          "the Firefox profile ends too early: fetch or export it again");
    CHECK_FALSE(ImportedText(meta + R"("threads":[]})").problem.empty());
    CHECK_FALSE(ImportedText(meta + R"("threads":[3]})").problem.empty());
    const ImportedText strange(meta + R"("threads":[{"name":"A","samples":{"stack":[0,1,2,3,99,-1],"time":["x",1e300],
        "weight":[1,-5,1,1,1,1]},"stackTable":{"prefix":[7,1,0],"frame":[0,0,88]},"frameTable":{"func":[4]},
        "funcTable":{"name":["x"]},"stringArray":[1]}]})");
    CHECK(strange.problem.empty());
    CHECK(strange.noted("import-negative"));
}

TEST_CASE("Firefox profiles: out and in again is the same") {
    BatchMaker maker;
    const wire::Id cycles = maker.event("cycles", "cycles"), wall = maker.event("wall", "ns");
    const wire::Id process = maker.process(5);
    const wire::Id one = maker.thread(process, 6, "pool"), two = maker.thread(process, 7, "main");
    const wire::Id library = maker.module("/usr/lib/liba.so", "ab");
    const wire::Id main = maker.named("main", library, 0, "main.c", 3);
    const wire::Id tiny = maker.named("tiny", library, wire::location_flag::inlined, "tiny.h", 9);
    const wire::Id module =
        maker.named("ext4_read [ext4]", maker.module("[kernel.kallsyms]", "", wire::ModuleKind::kernel));
    maker.row(100, cycles, one, maker.stack({main, tiny, module}), 2, 20);
    maker.row(300, cycles, two, maker.stack({main}), 3, 30);
    maker.row(200, wall, two, maker.stack({main, tiny}), 1, 1500);
    Store store;
    REQUIRE(store.apply(maker.take()));
    const std::string text = firefox(store, {}, {.name = "app", .started_ns = 7'000'000});
    rapidjson::Document document;
    document.Parse(text.c_str());
    REQUIRE_FALSE(document.HasParseError());
    REQUIRE(document["threads"].Size() == 3);
    const auto& samples = document["threads"][2]["samples"];
    CHECK(std::string(samples["weightType"].GetString()) == "tracing-ms");
    CHECK(samples["weight"][0].GetDouble() == 0.0015);
    CHECK(samples["time"][0].GetDouble() == 1000);  // 100 buckets of 10 ms behind the first sample
    for (const auto& thread : document["threads"].GetArray())
        for (const char* table : {"stackTable", "frameTable", "funcTable", "resourceTable", "samples", "markers"})
            for (const auto& column : thread[table].GetObject())
                if (column.value.IsArray()) CHECK(column.value.Size() == thread[table]["length"].GetUint());
    const ImportedText again(text);
    CHECK(again.recognised == "firefox");
    CHECK(again.problem.empty());
    CHECK(again.target == "app");
    CHECK(again.realtime == 7'000'000);
    CHECK(again.events() == "cycles/cycles wall/ns ");
    CHECK(again.lines() == "cycles;main;main 3\ncycles;pool;main;tiny;ext4_read 2\nwall;main;main;tiny 1\n");
    CHECK(again.lines("cycles", true) == "main;main 30\npool;main;tiny;ext4_read 20\n");
    CHECK(again.lines("wall", true) == "main;main;tiny 1500\n");
    CHECK(again.function("tiny")->kind == FrameKind::inlined);
    CHECK(again.module_of("tiny") == "liba.so");
    CHECK(again.module_of("ext4_read") == "ext4.ko");
    CHECK(again.store.end_ns() - again.store.first_ns() == store.end_ns() - store.first_ns());
}

}  // namespace flamewire::profile
