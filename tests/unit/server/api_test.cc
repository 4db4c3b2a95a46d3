#include "server/http/api.h"

#include <asio/error.hpp>
#include <catch2/catch.hpp>

#include <algorithm>
#include <cctype>
#include <fstream>
#include <iterator>
#include <latch>
#include <map>
#include <set>

#include "desk.h"
#include "recording.h"
#include "server/http/event_stream.h"
#include "server/http/timeline_answers.h"
#include "server/limits.h"
#include "server/session/import_file.h"
#include "wire/control.h"

using namespace flamewire;
using namespace flamewire::server;
using flamewire::test::get;
using flamewire::test::post;
using flamewire::test::RecordingScene;
using flamewire::test::ScratchDirectory;

namespace {

struct Desk : flamewire::test::Desk {
    rapidjson::Document ok(const std::string& target) {
        const Answer answer = api.answer(get(target));
        INFO(target << " " << answer.body);
        REQUIRE(answer.status == 200);
        return wire::parse_object(answer.body).value();
    }
};

void check_error(const Answer& answer, int status, const std::string& code) {
    INFO(answer.body);
    CHECK(answer.status == status);
    const auto document = wire::parse_object(answer.body);
    REQUIRE(document);
    REQUIRE(document->MemberCount() == 1);
    const auto& error = (*document)["error"];
    CHECK(error["code"].GetString() == code);
    CHECK(error["message"].GetStringLength() > 5);
}

}  // namespace

TEST_CASE("all errors have the same shape") {
    Desk desk;
    check_error(desk.api.answer(get("/api/flamegraph")), 404, "no_data");
    check_error(desk.api.answer(get("/api/nothing")), 404, "not_found");
    check_error(desk.api.answer(post("/api/status", "")), 405, "method_not_allowed");
    check_error(desk.api.answer(get("/api/sessions/none")), 404, "not_found");
    check_error(desk.api.answer(get("/api/sessions?limit=x")), 400, "validation");
    check_error(desk.api.answer(get("/api/sessions?limit=1001")), 400, "validation");
    check_error(desk.agent_answer(post("/api/agent/command", "{\"cmd\":\"ping\"}")), 409, "no_agent");
    check_error(desk.agent_answer(post("/api/agent/connect", "{\"host\":\"h\"}")), 502, "agent_unreachable");
    check_error(desk.agent_answer(post("/api/agent/connect", "{\"host\":\"h\",\"port\":70000}")), 400, "validation");
    RecordingScene scene;
    const auto session = desk.record(scene);
    for (const char* target :
         {"/api/flamegraph?start=abc", "/api/flamegraph?start=nan", "/api/flamegraph?start=5&end=4",
          "/api/flamegraph?tid=1,x", "/api/flamegraph?pid=-1", "/api/flamegraph?min_share=2", "/api/timeline?slices=0",
          "/api/timeline?slices=2001", "/api/thread-view", "/api/source", "/api/source?file=a&first=x", "/api/disasm",
          "/api/disasm?file=a", "/api/disasm?module=a", "/api/disasm?function=f&at=0x1"})
        check_error(desk.api.answer(get(target)), 400, "validation");
    check_error(desk.api.answer(get("/api/disasm?function=no_such")), 404, "not_found");
    check_error(desk.api.answer(get("/api/flamegraph?event=none")), 404, "not_found");
    check_error(desk.api.answer(get("/api/uploads/some-file")), 404, "not_found");
    check_error(desk.api.answer(post("/api/uploads/some-file?offset=0&size=x", "abc", "PUT")), 400, "validation");
    check_error(desk.api.answer(post("/api/uploads/some-file?offset=4&size=9", "abc", "PUT")), 409, "conflict");
    check_error(desk.api.answer(post("/api/uploads/%2e%2e", "", "DELETE")), 400, "validation");
    check_error(desk.api.answer(post("/api/uploads/some-file", "")), 405, "method_not_allowed");
    check_error(desk.api.answer(post("/api/modules", "[]")), 400, "validation");
    check_error(desk.api.answer(get("/api/export/session/" + session->id() + "?format=xml")), 400, "validation");
    check_error(desk.api.answer(post("/api/sessions/" + session->id(), "", "DELETE")), 409, "conflict");
    for (const char* body : {"", "[]", "{", "{\"name\":7}", "{\"tags\":{\"\":\"v\"}}", "{\"keep\":null}"})
        check_error(desk.api.answer(post("/api/sessions/" + session->id(), body, "PATCH")), 400, "validation");
    check_error(desk.api.answer(post("/api/sessions/none", "{}", "PATCH")), 404, "not_found");
    for (const char* body : {"", "[]", "{", "{\"binaries\":7}", "{\"inline\":1}", "{\"nonsense\":1}",
                             "{\"path_map\":[\"x\"]}", "{\"source_dir\":\"/no/such\"}", "{\"binary\":\"/no/such\"}"})
        check_error(desk.api.answer(post("/api/config", body, "PATCH")), 400, "validation");
}

TEST_CASE("the endpoints take the methods that docs/openapi.yaml describes") {
    std::ifstream file(PROJECT_DIR "/docs/openapi.yaml");
    std::map<std::string, std::set<std::string>> described;  // methods by path
    std::string path;
    for (std::string line; std::getline(file, line);) {
        if (line.starts_with("  /api/"))
            path = line.substr(2, line.find(':') - 2);
        else if (!path.empty() && line.starts_with("    ") && line[4] != ' ')
            described[path].insert(line.substr(4, line.find(':') - 4));
    }
    REQUIRE(described.size() > 30);
    for (auto& [template_path, methods] : described) {
        std::string target = template_path;
        if (const std::size_t id = target.find("{id}"); id != std::string::npos) target.replace(id, 4, "some-id");
        for (const char* method : {"get", "put", "post", "patch", "delete"}) {
            Request request = get(target);
            std::ranges::transform(std::string_view(method), std::back_inserter(request.method = ""),
                                   [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
            INFO(request.method << " " << template_path);
            CHECK((Api::route_of(request) != Api::Route::refused) == methods.contains(method));
        }
    }
}

TEST_CASE("modules are listed with weights, and an uploaded file of another build is refused") {
    Desk desk;
    RecordingScene scene;
    const auto session = desk.record(scene);
    desk.symbols.finish(session);
    const auto answer = desk.ok("/api/modules");
    REQUIRE(answer["modules"].Size() == 1);
    const auto& row = answer["modules"][0];
    CHECK(row["self"].GetUint() == 40);
    CHECK(row["total_samples"].GetUint() == 4);
    CHECK(row["self_percent"].GetDouble() == Approx(100));
    CHECK(row["module"]["state"].GetString() == std::string("not_found"));
    CHECK(row["module"]["tried"].Size() > 0);
    const std::string build_id = row["module"]["build_id"].GetString(), path = row["module"]["path"].GetString();

    // This program, which is another build.
    std::ifstream file("/proc/self/exe", std::ios::binary);
    const std::string bytes((std::istreambuf_iterator<char>(file)), {});
    const std::string size = std::to_string(bytes.size());
    for (std::size_t at = 0; at < bytes.size(); at += max_upload_slice) {
        const auto slice = post("/api/uploads/own-file?size=" + size + "&offset=" + std::to_string(at),
                                bytes.substr(at, max_upload_slice), "PUT");
        REQUIRE(desk.api.answer(slice).status == 200);
    }
    CHECK(desk.ok("/api/uploads/own-file")["whole"].GetBool());
    const std::string body = "{\"path\":\"" + path + "\",\"build_id\":\"" + build_id + "\",\"upload\":\"own-file\"}";
    const Answer given = desk.api.answer(post("/api/modules", body));
    INFO(given.body);
    check_error(given, 400, "validation");
    CHECK(given.body.find("build-id mismatch: the uploaded file has") != std::string::npos);
    // The file may belong to another module, so it stays until the client deletes it.
    CHECK(desk.ok("/api/uploads/own-file")["whole"].GetBool());
    CHECK(desk.api.answer(post("/api/uploads/own-file", "", "DELETE")).status == 200);
    check_error(desk.api.answer(get("/api/uploads/own-file")), 404, "not_found");
}

TEST_CASE("a page cannot begin more imports than may wait") {
    Desk desk;
    std::latch go_on(1);
    desk.imports.begin("/nowhere", "first", [&](const auto&) { go_on.wait(); });
    REQUIRE(desk.api.answer(post("/api/uploads/one-file?size=1&offset=0", "x", "PUT")).status == 200);
    const std::string body = R"({"upload":"one-file","name":")" + std::string(1000, 'n') + R"("})";
    const std::uint64_t before = times_reached(Limit::imports_waiting);
    for (std::size_t i = 1; i < limits::imports_waiting; ++i)
        REQUIRE(desk.api.answer(post("/api/imports", body)).status == 200);
    CHECK(desk.ok("/api/imports")["imports"][0]["name"].GetString() == std::string(255, 'n'));
    check_error(desk.api.answer(post("/api/imports", body)), 409, "conflict");
    CHECK(times_reached(Limit::imports_waiting) == before + 1);
    go_on.count_down();
}

TEST_CASE("a search for sessions has a bounded length") {
    Desk desk;
    CHECK(desk.ok("/api/sessions?q=" + std::string(256, 'a'))["total"].GetUint() == 0);
    check_error(desk.api.answer(get("/api/sessions?q=" + std::string(257, 'a'))), 400, "validation");
}

TEST_CASE("views count what the recording contains") {
    Desk desk;
    RecordingScene scene;
    const auto session = desk.record(scene);
    auto graph = desk.ok("/api/flamegraph");
    CHECK(graph["event"].GetString() == std::string("cycles"));
    CHECK(graph["total"]["samples"].GetUint() == 4);
    CHECK(graph["total"]["weight"].GetUint() == 40);
    CHECK(graph["newest_ns"].GetUint64() == 5'020'000'000);
    // Nodes: root, 0x1fff (all 4 samples, 1 of them self), and 0x1000 below it (3).
    REQUIRE(graph["nodes"]["parent"].Size() == 3);
    CHECK(graph["nodes"]["total"][1].GetUint() == 40);
    CHECK(graph["nodes"]["self_samples"][1].GetUint() == 1);
    CHECK(graph["nodes"]["total"][2].GetUint() == 30);
    CHECK(graph["nodes"]["parent"][2].GetUint() == 1);
    CHECK(graph["nodes"]["kind"][2].GetUint() == 4);
    CHECK(graph["files"][0].GetStringLength() == 0);
    CHECK(desk.ok("/api/flamegraph?event=faults")["total"]["weight"].GetUint() == 1);
    // The second row is in the second bucket.
    CHECK(desk.ok("/api/flamegraph?start=10")["total"]["samples"].GetUint() == 1);
    CHECK(desk.ok("/api/flamegraph?end=10")["total"]["samples"].GetUint() == 3);
    CHECK(desk.ok("/api/flamegraph?tid=43")["total"]["samples"].GetUint() == 4);
    CHECK(desk.ok("/api/flamegraph?tid=44,45")["total"]["samples"].GetUint() == 0);
    CHECK(desk.ok("/api/flamegraph?pid=42")["total"]["samples"].GetUint() == 4);
    auto functions = desk.ok("/api/functions");
    REQUIRE(functions["functions"].Size() == 2);
    CHECK(functions["functions"][0]["self_percent"].GetDouble() == 75.0);
    CHECK(functions["functions"][1]["total_percent"].GetDouble() == 100.0);
    auto threads = desk.ok("/api/thread-summary");
    CHECK(threads["total_samples"].GetUint() == 4);
    CHECK(threads["threads"][0]["comm"].GetString() == std::string("demo"));
    auto timeline = desk.ok("/api/timeline?slices=2&end=20");
    CHECK(timeline["slice_ms"].GetDouble() == 10.0);
    CHECK(timeline["samples"][0].GetUint() == 3);
    CHECK(timeline["samples"][1].GetUint() == 1);
    // The axis continues until the batch was closed.
    CHECK(timeline["session_end_ms"].GetDouble() == 250.0);
    CHECK(desk.ok("/api/timeline?slices=25")["slice_ms"].GetDouble() == 10.0);
    CHECK(desk.ok("/api/thread-view?tid=43")["functions"]["total"]["samples"].GetUint() == 4);
    CHECK(desk.ok("/api/sessions/" + session->id())["modules"][0]["build_id"].GetString() == std::string("0102"));
    CHECK(desk.ok("/api/status")["total_samples"].GetUint() == 5);
    const Answer text = desk.api.answer(get("/api/export/session/" + session->id()));
    CHECK_THAT(text.body, Catch::Contains(" 3\n"));
    CHECK(text.headers.at(0).first == "Content-Disposition");
}

TEST_CASE("a view is compared with another one, of the same or of another session") {
    Desk desk;
    RecordingScene first(0xAB), second(0xCD);
    const auto old = desk.record(first);
    const auto now = desk.record(second);
    const wire::Frame more = second.next();
    now->ingest(more.flag, more.payload, 1'800'000'000'300'000'000).value();  // 8 samples of weight 80 in 500 ms
    const std::string of = "?session=" + now->id() + "&base_session=" + old->id();
    auto diff = desk.ok("/api/diff" + of);
    CHECK(diff["normalise"].GetString() == std::string("total"));
    CHECK(diff["per"].GetDouble() == 80);
    CHECK(diff["base"]["per"].GetDouble() == 40);
    CHECK(diff["base"]["session"].GetString() == old->id());
    REQUIRE(diff["nodes"]["parent"].Size() == 3);
    CHECK(diff["nodes"]["total"][2].GetUint() == 60);
    CHECK(diff["nodes"]["base_total"][2].GetUint() == 30);
    CHECK(diff["nodes"]["samples"][2].GetUint() == 6);
    CHECK(diff["nodes"]["base_self_samples"][1].GetUint() == 1);
    // Twice the weight in twice the time.
    auto timed = desk.ok("/api/diff/functions" + of + "&normalise=time");
    CHECK(timed["duration_ms"].GetDouble() == 500);
    CHECK(timed["base"]["duration_ms"].GetDouble() == 250);
    REQUIRE(timed["functions"].Size() == 2);
    CHECK(timed["functions"][0]["self_change"].GetDouble() == 0);
    CHECK(timed["functions"][0]["presence"].GetString() == std::string("both"));
    // One session: its second bucket, with one sample in the outer function, is compared with its first, where all
    // samples are below it.
    auto times = desk.ok("/api/diff/functions?session=" + old->id() + "&start=10&base_end=10");
    CHECK(times["whole"]["samples"].GetUint() == 1);
    CHECK(times["base"]["whole"]["samples"].GetUint() == 3);
    // Both self weights changed by their whole amount. The total of the inner function changed, too.
    CHECK(times["functions"][0]["self_change"].GetDouble() == -1);
    CHECK(times["functions"][0]["total_change"].GetDouble() == -1);
    CHECK(times["functions"][0]["presence"].GetString() == std::string("gone"));
    CHECK(times["functions"][1]["self_change"].GetDouble() == 1);
    CHECK(times["functions"][1]["total_change"].GetDouble() == 0);

    for (const char* path : {"/api/diff", "/api/diff/functions"}) {
        check_error(desk.api.answer(get(path + of + "&base_start=x")), 400, "validation");
        check_error(desk.api.answer(get(path + of + "&normalise=x")), 400, "validation");
        check_error(desk.api.answer(get(path + of + "x")), 404, "not_found");
        check_error(desk.api.answer(get(path + of + "&event=none")), 404, "not_found");
    }
}

TEST_CASE("different measurements are not compared") {
    Desk desk;
    RecordingScene first(0xAB), second(0xCD), third(0xEF);
    const auto now = desk.record(first);
    const auto recorded = [&](RecordingScene& scene, wire::Batch batch) {
        auto session = desk.catalog->create(scene.id(), "demo").value();
        const wire::Frame frame = scene.frame(std::move(batch));
        session->ingest(frame.flag, frame.payload, 1'800'000'000'000'000'000).value();
        return session;
    };
    wire::Batch other = second.batch();
    other.strings[2] = "cpu-clock";
    wire::Batch unit = third.batch();
    unit.events[0].unit = 2;
    const std::string of = "/api/diff?session=" + now->id() + "&base_session=";
    const Answer missing = desk.api.answer(get(of + recorded(second, std::move(other))->id()));
    check_error(missing, 400, "not_comparable");
    CHECK_THAT(missing.body, Catch::Contains("did not measure cycles") && Catch::Contains("it has cpu-clock, faults"));
    const Answer differs = desk.api.answer(get(of + recorded(third, std::move(unit))->id()));
    check_error(differs, 400, "not_comparable");
    CHECK_THAT(differs.body, Catch::Contains("counts demo in the baseline") && Catch::Contains("cycles here"));
}

TEST_CASE("the time axis has slices of equal width, and marks") {
    Desk desk;
    RecordingScene scene;
    const auto session = desk.record(scene);
    wire::Batch batch = scene.batch();
    batch.string_base = 5;
    batch.strings = {"make"};
    batch.thread_base = 2;
    batch.threads = {{1, 42, 2}};
    const auto at = [](std::uint64_t ms) { return test::start_ns + ms * 1'000'000; };
    batch.lifecycle = {{wire::LifecycleKind::exec, at(300), 2, 5}, {wire::LifecycleKind::exit, at(400), 2, 0}};
    batch.losses = {{wire::LossReason::ring_full, 9, at(310), at(320), 1, 0},
                    {wire::LossReason::throttled, 2, at(450), at(450), 1, 0}};
    const wire::Frame frame = scene.frame(batch);
    REQUIRE(session->ingest(frame.flag, frame.payload, 1'800'000'000'250'000'000));

    auto timeline = desk.ok("/api/timeline?bucket=100&event=cycles");
    CHECK(timeline["start_ms"].GetDouble() == 0);
    CHECK(timeline["slice_ms"].GetDouble() == 100);
    REQUIRE(timeline["samples"].Size() == 5);
    CHECK(timeline["samples"][0].GetUint() == 4);
    CHECK(timeline["samples"][2].GetUint() == 4);
    // A range that starts or ends inside of a bucket grows to whole buckets.
    timeline = desk.ok("/api/timeline?bucket=100&event=cycles&start=260&end=420");
    CHECK(timeline["start_ms"].GetDouble() == 200);
    REQUIRE(timeline["samples"].Size() == 3);
    CHECK(timeline["samples"][0].GetUint() == 4);
    const auto& marks = timeline["marks"];
    REQUIRE(marks.Size() == 4);
    CHECK(marks[0]["kind"].GetString() == std::string("exec"));
    CHECK(marks[0]["start_ms"].GetDouble() == 300);
    CHECK(marks[0]["pid"].GetUint() == 42);
    CHECK(marks[0]["name"].GetString() == std::string("make"));
    CHECK(marks[1]["kind"].GetString() == std::string("loss"));
    CHECK(marks[1]["count"].GetUint() == 9);
    CHECK(marks[1]["lost"].GetBool());
    CHECK(marks[1]["event"].GetString() == std::string("cycles"));
    CHECK(marks[2]["kind"].GetString() == std::string("exit"));
    CHECK(marks[3]["reason"].GetString() == std::string("throttled"));
    CHECK_FALSE(marks[3]["lost"].GetBool());
    check_error(desk.api.answer(get("/api/timeline?bucket=0.5")), 400, "validation");
    check_error(desk.api.answer(get("/api/timeline?bucket=x")), 400, "validation");
    // 500 ms are 500 buckets of 1 ms. 4,000 s would be too many.
    CHECK(desk.ok("/api/timeline?bucket=1")["samples"].Size() == 500);
    wire::Batch late = scene.batch();
    late.monotonic_ns = at(4'000'000);
    const wire::Frame late_frame = scene.frame(late);
    REQUIRE(session->ingest(late_frame.flag, late_frame.payload, 1'800'000'000'500'000'000));
    const Answer refused = desk.api.answer(get("/api/timeline?bucket=1"));
    check_error(refused, 400, "validation");
    CHECK_THAT(refused.body, Catch::Contains("2003 ms or more"));
}

TEST_CASE("a timeline marks its coarsened part, and has all samples from the start of the session") {
    const ScratchDirectory directory;
    RecordingScene scene;
    const auto session =
        Session::create("s", directory / "stream.flw", scene.id(), {.store = {.max_rows = 640}}).value();
    constexpr std::uint64_t batches = 2'000;
    for (std::uint64_t i = 0; i < batches; ++i) {
        const wire::Frame frame = scene.next();
        session->ingest(frame.flag, frame.payload, 1'800'000'000'000'000'000).value();
    }
    session->status().publish(true);
    // The first bucket is wider than the 5 s of uptime at the start of the recording.
    CHECK(session->status().start_ns() == flamewire::test::start_ns);
    const Answer answer = timeline_answer(*session, get("/api/timeline?event=cycles&bucket=1000"));
    REQUIRE(answer.status == 200);
    const rapidjson::Document timeline = wire::parse_object(answer.body).value();
    CHECK(timeline["start_ms"].GetDouble() == 0);
    CHECK(timeline["session_end_ms"].GetDouble() == 250.0 * batches);
    std::uint64_t samples = 0;
    for (const auto& slice : timeline["samples"].GetArray()) samples += slice.GetUint64();
    CHECK(samples == 4 * batches);
    const auto& coarse = timeline["coarse"];
    REQUIRE(coarse.Size() >= 1);
    CHECK(coarse[0]["start_ms"].GetDouble() == 0);
    CHECK(coarse[0]["bucket_ms"].GetDouble() >= 100);
    CHECK_FALSE(coarse[0]["dropped"].GetBool());
    CHECK(coarse[coarse.Size() - 1]["end_ms"].GetDouble() == session->info().retention->whole_from_ms);
    const Answer newest = timeline_answer(*session, get("/api/timeline?bucket=1000&start=499500"));
    CHECK(wire::parse_object(newest.body).value()["coarse"].Empty());
}

TEST_CASE("status and session contain the stack mode and how many stacks are whole") {
    Desk desk;
    RecordingScene scene;
    const auto session = desk.record(scene);
    auto status = desk.ok("/api/status");
    REQUIRE(status["sessions"].Size() == 1);
    CHECK(status["sessions"][0]["id"].GetString() == session->id());
    const auto check = [](const auto& reported) {
        CHECK(reported["unwind"].GetString() == std::string("auto"));
        CHECK(reported["stack_bytes"].GetUint() == 16384);
        CHECK(reported["max_depth"].GetUint() == 1024);
        CHECK(reported["unwind_totals"]["processes"].GetUint() == 1);
        REQUIRE(reported["unwind_processes"].Size() == 1);
        const auto& process = reported["unwind_processes"][0];
        CHECK(process["pid"].GetUint() == 42);
        CHECK(process["comm"].GetString() == std::string("demo"));
        CHECK(process["mode"].GetString() == std::string("dwarf"));
        CHECK(process["why"].GetString() == std::string("no frame pointers"));
        for (const auto* counts : {&process, &reported["unwind_totals"]}) {
            CHECK((*counts)["samples"].GetUint64() == 5);
            CHECK((*counts)["whole"].GetUint64() == 2);
            CHECK((*counts)["joined"].GetUint64() == 2);
            CHECK((*counts)["truncated"].GetUint64() == 1);
            CHECK((*counts)["open_end"].GetUint64() == 0);
            CHECK((*counts)["stopped"].GetUint64() == 0);
            CHECK((*counts)["frames"].GetUint64() == 9);
            CHECK((*counts)["stack_bytes"].GetUint64() == 5 * 16384);
        }
    };
    check(status["sessions"][0]);
    check(desk.ok("/api/sessions/" + session->id()));
    // The list contains only the sums.
    auto list = desk.ok("/api/sessions");
    CHECK(list["sessions"][0]["unwind_totals"]["joined"].GetUint64() == 2);
    CHECK_FALSE(list["sessions"][0].HasMember("unwind_processes"));
}

TEST_CASE("with several live sessions, the request must name one") {
    Desk desk;
    RecordingScene one(1), two(2);
    desk.record(one);
    const auto second = desk.record(two);
    const Answer answer = desk.api.answer(get("/api/functions"));
    CHECK(answer.status == 409);
    auto document = wire::parse_object(answer.body).value();
    CHECK(document["error"]["code"].GetString() == std::string("several_sessions"));
    CHECK(document["error"]["sessions"].Size() == 2);
    CHECK(desk.api.answer(get("/api/functions?session=" + second->id())).status == 200);
    CHECK(desk.ok("/api/sessions?limit=1")["sessions"].Size() == 1);
    CHECK(desk.ok("/api/sessions?limit=1")["total"].GetUint() == 2);
    CHECK(desk.ok("/api/sessions?q=nothing-like-it")["total"].GetUint() == 0);
}

TEST_CASE("groups are refused where they do not apply") {
    Desk desk;
    RecordingScene scene;
    const std::string id = desk.record(scene)->id();
    const std::string functions = "/api/functions", exported = "/api/export/session/" + id;
    for (const std::string& path :
         {functions, std::string("/api/callers"), std::string("/api/diff"), std::string("/api/thread-view"),
          std::string("/api/timeline"), exported + "?format=json", exported + "?format=html"}) {
        const std::string more = path.contains('?') ? "&group=" : "?group=";
        const Answer answer = desk.api.answer(get(path + more + "process"));
        CHECK(answer.status == 400);
        CHECK_THAT(answer.body, Catch::Contains("group is for flame graphs"));
    }
    for (const std::string& path :
         {std::string("/api/flamegraph?group=process"), std::string("/api/export/flamegraph?group=process"),
          exported + "?group=process", exported + "?format=svg&group=thread", functions + "?group=none"})
        CHECK(desk.api.answer(get(path)).status == 200);
}

TEST_CASE("for a missing source file, the answer lists the paths that were tried") {
    Desk desk;
    RecordingScene scene;
    desk.record(scene);
    const Answer answer = desk.api.answer(get("/api/source?file=/build/demo/main.cc"));
    CHECK(answer.status == 404);
    auto document = wire::parse_object(answer.body).value();
    CHECK(document["error"]["tried"].Size() >= 2);
    CHECK_THAT(document["error"]["suggestion"].GetString(), Catch::StartsWith("--path-map /build/demo="));
    std::ofstream(desk.data / "main.cc") << "one\ntwo\nthree\n";
    desk.sources.set_config(desk.sources.config());  // the index is not rebuilt at every miss
    auto source = desk.ok("/api/source?file=/build/demo/main.cc&first=2&count=1");
    CHECK(source["line_count"].GetUint() == 3);
    REQUIRE(source["lines"].Size() == 1);
    CHECK(source["lines"][0]["source"].GetString() == std::string("two"));
    CHECK(source["hottest"].GetUint() == 0);
}

TEST_CASE("commands reach the named agent") {
    Desk desk;
    AgentInfo agent;
    agent.id = "a";
    agent.connected = true;
    desk.agents.push_back(std::make_shared<AgentInfo>(agent));
    CHECK(desk.agent_answer(post("/api/agent/command", R"({"cmd":"ping","timeout":2})")).body ==
          R"({"id":"1","ok":true})");
    CHECK(desk.sent == "a ping 2000");
    for (const char* body : {"", "[]", R"({"cmd":"rm"})", R"({"cmd":"start","args":7})", R"({"cmd":"ping","extra":1})",
                             R"({"cmd":"ping","timeout":0})", R"({"cmd":"ping","timeout":"x"})"})
        check_error(desk.agent_answer(post("/api/agent/command", body)), 400, "validation");
    agent.id = "b";
    desk.agents.push_back(std::make_shared<AgentInfo>(agent));
    const Answer several = desk.agent_answer(post("/api/agent/command", R"({"cmd":"ping"})"));
    CHECK(several.status == 409);
    CHECK_THAT(several.body, Catch::Contains("\"agents\":[\"a\",\"b\"]"));
    CHECK(desk.agent_answer(post("/api/agent/command?agent=b", R"({"cmd":"stop"})")).status == 200);
    CHECK(desk.sent == "b stop 60000");
    CHECK(desk.agent_answer(post("/api/stop?agent=b", "")).body ==
          R"({"stopped":false,"reason":"nothing is being recorded"})");
    agent.session = "s";
    desk.agents[1] = std::make_shared<AgentInfo>(agent);
    CHECK(desk.agent_answer(post("/api/stop?agent=b", "")).body == R"({"stopped":true,"session":"s"})");
}

TEST_CASE("the configuration changes completely or not at all") {
    Desk desk;
    auto config = desk.ok("/api/config");
    CHECK(config["inline"].GetBool());
    const Answer refused = desk.api.answer(post("/api/config", R"({"inline":false,"sysroot":"/no/such"})", "PATCH"));
    CHECK(refused.status == 400);
    CHECK(desk.settings.get().inlines);
    CHECK(desk.api.answer(post("/api/config", R"({"inline":false,"path_map":["/a=/b"]})", "PATCH")).status == 200);
    CHECK_FALSE(desk.symbolizer.config().inlines);
    CHECK(desk.sources.config().path_maps.at(0).second == "/b");
}

TEST_CASE("requests with other origins and unusual host names are refused") {
    Request request = get("/api/status");
    for (const char* host : {"localhost:8080", "127.0.0.1:8080", "[::1]:8080", "192.168.1.5", "LOCALHOST"}) {
        request.host = host;
        CHECK_FALSE(check_origin(request, {}));
    }
    for (const char* host : {"", "evil.example", "localhost.evil.example:80", "127.0.0.1.evil.example"}) {
        request.host = host;
        CHECK(check_origin(request, {})->status == 403);
    }
    request.host = "desk.lan:8080";
    CHECK_FALSE(check_origin(request, {"desk.lan"}));
    Request change = post("/api/agent/command", "{}");
    change.host = "127.0.0.1:8080";
    CHECK_FALSE(check_origin(change, {}));
    change.origin = "http://127.0.0.1:8080";
    CHECK_FALSE(check_origin(change, {}));
    change.origin = "http://127.0.0.1:9";
    CHECK(check_origin(change, {})->status == 403);
    change.origin = "null";
    CHECK(check_origin(change, {})->status == 403);
    for (const char* path : {"/api/status", "/api/flamegraph", "/metrics"}) {
        Request read = get(path);
        read.host = "localhost";
        for (const char* site : {"", "same-origin", "none"}) {
            read.fetch_site = site;
            CHECK_FALSE(check_origin(read, {}));
        }
        for (const char* site : {"cross-site", "same-site"}) {
            read.fetch_site = site;
            CHECK(check_origin(read, {})->status == 403);
        }
        read.fetch_site.clear();
        read.origin = "http://evil.example";
        CHECK(check_origin(read, {})->status == 403);
    }
    // A link to the page may come from any site.
    Request page = get("/");
    page.host = "localhost";
    page.fetch_site = "cross-site";
    CHECK_FALSE(check_origin(page, {}));
}

TEST_CASE("targets are decoded strictly") {
    const auto target = parse_target("/api/x%20y?a=b+c%26&d&a=z#f").value();
    CHECK(target.path == "/api/x y");
    CHECK(target.query.at("a") == "z");
    CHECK(target.query.at("d").empty());
    for (const char* bad : {"/%", "/%4", "/%zz", "/%00", "/a?b=%g1", "/api%2Fstatus", "/api%2fstatus"})
        CHECK_FALSE(parse_target(bad));
}

TEST_CASE("a stalled reader gets only the newest state") {
    SessionInfo info;
    info.id = "s";
    info.events.push_back({"cycles", "cycles", 1, 1, 1, 1});
    int requests = 0;
    EventTexts texts({.status = [] { return "{}"; },
                      .session =
                          [&](const std::string&) {
                              ++requests;
                              return std::optional(info);
                          },
                      .agent = [](const std::string&) { return AgentPtr(); }});
    EventMarks marks("s"), second("");
    const auto change = [&] {
        texts.session_changed("s");
        marks.session("s");
        second.session("s");
    };
    for (info.data_version = 1; info.data_version < 100; ++info.data_version) change();
    marks.session("another");
    const std::string text = marks.render(texts);
    CHECK(second.render(texts) == text);
    CHECK(requests == 1);
    CHECK_THAT(text, Catch::Contains("event: event_types\ndata: {\"session\":\"s\",\"event_types\":[\"cycles\"]}\n\n"));
    CHECK_THAT(text, Catch::Contains("\"data_version\":100,"));
    CHECK(text.find("\"data_version\":", text.find("\"data_version\":") + 1) == std::string::npos);
    CHECK_FALSE(marks.any());
    change();
    CHECK_THAT(marks.render(texts), Catch::Contains("\"data_version\":100,") &&
                                        !Catch::Contains("event: event_types") && !Catch::Contains("event: loss") &&
                                        !Catch::Contains("event: metrics"));

    // Losses are sent if there are any, and once more when there are none left.
    info.losses.push_back({"ring_full", 3, true, "cycles", 0, 1});
    change();
    CHECK_THAT(marks.render(texts), Catch::Contains("event: loss\ndata: {\"session\":\"s\",\"losses\":[{"));
    change();
    CHECK_THAT(marks.render(texts), !Catch::Contains("event: loss"));
    info.losses.clear();
    info.health_version = 4;
    change();
    CHECK_THAT(marks.render(texts), Catch::Contains("\"losses\":[],") && Catch::Contains("\"health_version\":4"));
    // A later subscriber gets everything.
    CHECK_THAT(second.render(texts), Catch::Contains("\"losses\":[],"));
}

TEST_CASE("a reader of many sessions gets updates of each in turn") {
    SessionInfo info;
    info.target = "t";
    EventTexts texts({.status = [] { return "{}"; },
                      .session =
                          [&](const std::string& id) {
                              info.id = id;
                              return std::optional(info);
                          },
                      .agent =
                          [](const std::string& id) {
                              AgentInfo agent;
                              agent.id = id;
                              agent.hello = '"' + std::string(20'000, 'x') + '"';
                              return std::make_shared<const AgentInfo>(agent);
                          }});
    EventMarks marks("");
    std::set<std::string> reported;
    std::size_t longest = 0;
    for (int round = 0; round < 40; ++round) {
        // All of them change in every round.
        for (int one = 0; one < 900; ++one) marks.session(std::to_string(one));
        for (int one = 0; one < 60; ++one) marks.agent("a" + std::to_string(one));
        const std::string text = marks.render(texts);
        longest = std::max(longest, text.size());
        CHECK(marks.any());
        for (const std::string_view head :
             {"event: data_version\ndata: {\"session\":\"", "event: agent\ndata: {\"id\":\""})
            for (std::size_t at = 0; (at = text.find(head, at)) != std::string::npos;) {
                at += head.size();
                reported.insert(text.substr(at, text.find('"', at) - at));
            }
    }
    CHECK(reported.size() == 960);
    CHECK(longest < 160'000);
}

TEST_CASE("addresses are dialed, listed and removed") {
    Desk desk;
    const auto list = [&](const Answer& answer) {
        INFO(answer.body);
        REQUIRE(answer.status == 200);
        return wire::parse_object(answer.body).value()["dials"].Size();
    };
    CHECK(list(desk.agent_answer(get("/api/agent/dials"))) == 0);
    CHECK(list(desk.agent_answer(post("/api/agent/dials", R"({"host":"board"})"))) == 1);
    CHECK(desk.dialled.front().port == 9999);
    CHECK(list(desk.agent_answer(post("/api/agent/dials", R"({"host":"::1","port":5})"))) == 2);
    check_error(desk.agent_answer(post("/api/agent/dials", R"({"host":"third"})")), 409, "conflict");
    CHECK(list(desk.agent_answer(post("/api/agent/dials?host=board", "", "DELETE"))) == 1);
    check_error(desk.agent_answer(post("/api/agent/dials?host=board&port=9999", "", "DELETE")), 404, "not_found");
    for (const char* target : {"/api/agent/dials", "/api/agent/dials?host=x&port=0", "/api/agent/dials?host=x&port=y"})
        check_error(desk.agent_answer(post(target, "", "DELETE")), 400, "validation");
    for (const char* body : {"", "{}", R"({"host":"a b"})", R"({"host":"a\u0001"})", R"({"host":5})",
                             R"({"host":"a","port":70000})", R"({"host":"a","x":1})"})
        check_error(desk.agent_answer(post("/api/agent/dials", body)), 400, "validation");
}

TEST_CASE("the message for an unreachable agent contains cause and remedy") {
    const auto explain = [](const std::error_code& error, bool late = false) {
        return explain_dial("board", 7, error, late);
    };
    CHECK(explain(asio::error::connection_refused).find("flamewire-agent --listen") != std::string::npos);
    CHECK(explain(asio::error::connection_refused).find("board:7") != std::string::npos);
    CHECK(explain(asio::error::host_unreachable).find("no route to board") != std::string::npos);
    CHECK(explain(asio::error::operation_aborted, true).find("firewall") != std::string::npos);
    CHECK(explain(asio::error::host_not_found).find("the name board is not known") == 0);
    CHECK(explain(asio::error::connection_reset).find("board:7") == 0);
}
