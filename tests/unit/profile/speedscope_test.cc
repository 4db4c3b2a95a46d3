// Import and export of speedscope's format, and the reader of large JSON. Expected lines are written by hand.
#include "profile/formats/speedscope.h"

#include <catch2/catch.hpp>
#include <fmt/format.h>
#include <rapidjson/document.h>

#include "batch_maker.h"
#include "imported.h"
#include "profile/formats/json_shape.h"
#include "profile/query/query.h"

namespace flamewire::profile {
namespace {

const std::string schema = R"("$schema":"https://www.speedscope.app/file-format-schema.json",)";

struct Seen final : JsonSink {
    std::string text;
    bool value(int place, const JsonValue& value) override {
        text += std::to_string(place) + "=";
        text += value.kind == JsonValue::Kind::text ? std::string(value.text) : std::to_string(value.whole(1000, 9999));
        text += ' ';
        return place != 9;
    }
    bool begin(int place) override {
        text += "(" + std::to_string(place) + " ";
        return true;
    }
    bool end(int place) override {
        text += std::to_string(place) + ") ";
        return true;
    }
};

struct Job final : ImportJob {
    explicit Job(std::string text) : text_source(std::move(text)) {}
    ImportSource& source() override { return text_source; }
    [[nodiscard]] const std::string& name() const override { return none; }
    RecordingBuilder& begin(wire::Recording /*about*/, std::int64_t /*realtime*/) override { std::abort(); }
    [[nodiscard]] std::string module_file(const symbol::ModuleIdentity& /*module*/) override { return {}; }
    void progress(std::uint64_t /*read*/) override {}
    TextSource text_source;
    std::string none;
};

std::string seen(const std::string& text) {
    const JsonShape shape{{"a.b[]", 1}, {"a.b[].c", 2}, {"d", 3}, {"stop", 9}};
    Job job(text);
    Seen sink;
    const auto end = read_json(job, shape, sink);
    if (!end) return "error: " + end.error().message;
    return sink.text + (*end == JsonEnd::whole ? "whole" : *end == JsonEnd::cut ? "cut" : "stopped");
}

}  // namespace

TEST_CASE("large JSON: requested values are reported, the rest is skipped") {
    CHECK(seen(R"({"x":{"d":1,"b":[1]},"a":{"b":[5,{"c":"t","y":[{"c":1}]},[7]]},"d":12,"e":null})") ==
          "1=5 (1 2=t 1) (1 1) 3=12 whole");
    CHECK(seen("\xef\xbb\xbf {\"d\":-1}") == "3=9999 whole");
    CHECK(seen(R"({"d":1,"stop":2,"d":3})") == "3=1 9=2 stopped");
    CHECK(seen(R"({"d":1,"a":)") == "3=1 cut");
    CHECK(seen(R"({"d":1,"d":"ab)") == "3=1 cut");
    CHECK(seen("{\"d\" 1}").starts_with("error: this is not JSON, from byte 5 on"));
    CHECK(seen(std::string(2000, '[')).starts_with("error: the JSON is nested more than 1000 levels deep"));
    CHECK(seen("{\"d\":" + std::string(600'000, ' ') + "7}") == "3=7 whole");
}

TEST_CASE("speedscope in: sampled and evented profiles, several of them") {
    const ImportedText sampled("{" + schema + R"("profiles":[
        {"type":"sampled","name":"one","unit":"seconds","startValue":0,"endValue":14,
         "samples":[[0,1,2],[0,1,3],[0,1],[]],"weights":[1,4,0.5,2]},
        {"type":"evented","name":"two","unit":"milliseconds","startValue":1000,"endValue":1010,"events":[
         {"type":"O","frame":0,"at":1000},{"type":"O","frame":1,"at":1002},{"type":"C","frame":1,"at":1005},
         {"type":"C","frame":0,"at":1010}]}],
        "shared":{"frames":[{"name":"a"},{"name":"b","file":"b.c","line":7},{"name":"c"},{"name":"d"}]},"name":"both"})");
    CHECK(sampled.recognised == "speedscope");
    CHECK(sampled.problem.empty());
    CHECK(sampled.target == "both");
    CHECK(sampled.events() == "time/ns ");
    CHECK(sampled.lines({}, true) ==
          "one 2000000000\none;a;b 500000000\none;a;b;c 1000000000\none;a;b;d 4000000000\ntwo;a 7000000\ntwo;a;b "
          "3000000\n");
    CHECK(sampled.function("b")->line == 7);
    // The second sample begins one second after the first.
    CHECK(sampled.store.end_ns() == import_moment_ns + 5'510'000'000);
    const ImportedText counts("{" + schema + R"("profiles":[{"type":"evented","name":"x","unit":"none","startValue":0,
        "endValue":14,"events":[{"type":"O","frame":0,"at":0},{"type":"O","frame":1,"at":4},{"type":"C","frame":1,"at":6},
        {"type":"C","frame":0,"at":14}]}],"shared":{"frames":[{"name":"a"},{"name":"b"}]}})");
    CHECK(counts.events() == "samples/samples ");
    CHECK(counts.lines() == "x;a 12\nx;a;b 2\n");
}

TEST_CASE("speedscope in: errors have messages") {
    const std::string frames = R"("shared":{"frames":[{"name":"a"}]},)";
    const auto problem = [&](const std::string& rest) { return ImportedText("{" + schema + frames + rest).problem; };
    CHECK(problem(R"("profiles":[{"type":"evented","name":"x","unit":"none","startValue":0,"events":[
        {"type":"O","frame":0,"at":5},{"type":"C","frame":0,"at":1}]}]})")
              .find("not in the order of time") != std::string::npos);
    CHECK(problem(R"("profiles":[{"type":"evented","name":"x","unit":"none","startValue":0,"events":[
        {"type":"C","frame":0,"at":1}]}]})")
              .find("not the innermost") != std::string::npos);
    CHECK(problem(R"("profiles":[{"type":"sampled","samples":[[0)") ==
          "the speedscope profile ends too early: fetch or export it again");
    CHECK_FALSE(problem(R"("profiles":[]})").empty());
    CHECK_FALSE(problem(R"("profiles":[1]})").empty());
    const ImportedText strange("{" + schema + frames +
                               R"("profiles":[{"type":"sampled","name":"x","unit":"none","samples":
        [[0,77,-1,"a"],[0,{}]],"weights":[1e300,"w"]}]})");
    CHECK(strange.problem.empty());
    CHECK(strange.noted("import-frames"));
}

TEST_CASE("speedscope: export and import give the same") {
    Store store;
    REQUIRE(store.apply(mixed_batch("/liba.so", 1000)));
    const std::string text = speedscope(store, {}, "a \"name\"").value();
    rapidjson::Document document;
    document.Parse(text.c_str());
    REQUIRE_FALSE(document.HasParseError());
    CHECK(document["profiles"].Size() == 3);
    CHECK(std::string(document["profiles"][2]["unit"].GetString()) == "nanoseconds");
    CHECK(document["profiles"][0]["endValue"].GetUint() == 20);
    const ImportedText again(text);
    CHECK(again.problem.empty());
    CHECK(again.target == "a \"name\"");
    CHECK(again.events() == "cycles/cycles wall/ns ");
    CHECK(again.lines() == "cycles;main;main 3\ncycles;pool;main;tiny;ext4_read 2\nwall;main;main;tiny 1\n");
    CHECK(again.lines("cycles", true) == "main;main 30\npool;main;tiny;ext4_read 20\n");
    CHECK(again.function("tiny")->kind == FrameKind::inlined);
    CHECK(again.module_of("tiny") == "liba.so");
    CHECK(again.module_of("ext4_read") == "ext4.ko");
    CHECK(again.store.end_ns() - again.store.first_ns() == store.end_ns() - store.first_ns());
    REQUIRE(again.store.threads().size() == 3);
    CHECK(again.store.threads()[1].pid == 5);
}

TEST_CASE("speedscope: a function is one frame, and its lines are restored") {
    BatchMaker maker;
    const wire::Id cycles = maker.event("cycles", "cycles");
    const wire::Id process = maker.process(5);
    const wire::Id quiet = maker.thread(process, 6, "quiet"), busy = maker.thread(process, 7, "busy");
    const wire::Id at_3 = maker.named("main", 0, 0, "main.c", 3), at_9 = maker.named("main", 0, 0, "main.c", 9);
    maker.row(100, cycles, quiet, maker.stack({at_3}), 1, 1);
    maker.row(100, cycles, busy, maker.stack({at_3}), 2, 2);
    maker.row(200, cycles, busy, maker.stack({at_9, at_3}), 1, 1);
    maker.row(300, cycles, busy, maker.stack({at_3}), 4, 4);
    Store store;
    REQUIRE(store.apply(maker.take()));
    const std::string text = speedscope(store, {}, "x").value();
    rapidjson::Document document;
    document.Parse(text.c_str());
    REQUIRE_FALSE(document.HasParseError());
    CHECK(document["shared"]["frames"].Size() == 1);
    CHECK(document["shared"]["flamewire"]["lines"].Size() == 2);
    CHECK(document["activeProfileIndex"].GetUint() == 1);
    const ImportedText again(text);
    CHECK(again.problem.empty());
    CHECK(again.lines() == "busy;main 6\nbusy;main;main 1\nquiet;main 1\n");
    const auto heat = [](const ImportedText& one) {
        std::string text_of;
        for (const LineRow& row : line_heat(one.store, {}, "main.c"))
            text_of += fmt::format("{}: {} of {}; ", row.line, row.self.samples, row.total.samples);
        return text_of;
    };
    CHECK(heat(again) == "3: 8 of 8; 9: 0 of 1; ");
    // The list of lines per stack may be wrong or missing. Then the frame's own line is used.
    std::string strange = text;
    strange.replace(strange.find("\"lines\":[0"), 10, "\"lines\":[7");
    CHECK(ImportedText(strange).lines() == again.lines());
    CHECK(heat(ImportedText(strange)) == "3: 8 of 8; 9: 0 of 1; ");
}

}  // namespace flamewire::profile
