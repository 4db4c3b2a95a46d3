// Exports: exact text for small stores. For unusual names, independent readers check that the output is well-formed.
#include <catch2/catch.hpp>
#include <rapidjson/document.h>
#include <rapidjson/encodings.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/utf8.h"
#include "batch_maker.h"
#include "profile/formats/collapsed.h"
#include "profile/formats/csv.h"
#include "profile/formats/firefox.h"
#include "profile/formats/json.h"
#include "profile/formats/pprof.h"
#include "profile/formats/speedscope.h"
#include "profile/formats/svg.h"
#include "profile/formats/text.h"

namespace flamewire::profile {

static Store small_store() {
    BatchMaker maker;
    const wire::Id cycles = maker.event("cycles", "cycles");
    const wire::Id faults = maker.event("page-faults", "faults");
    const wire::Id process = maker.process(5);
    const wire::Id one = maker.thread(process, 6, "pool");
    const wire::Id two = maker.thread(process, 7, "pool");
    const wire::Id other = maker.thread(process, 8, "a;b\nc");
    const wire::Id lib_a = maker.named("get", maker.module("/liba.so", "a"));
    const wire::Id lib_b = maker.named("get", maker.module("/libb.so", "b"));
    const wire::Id main = maker.named("main");
    maker.row(1, cycles, one, maker.stack({main, lib_a}), 2, 20);
    maker.row(1, cycles, two, maker.stack({main, lib_b}), 3, 30);
    maker.row(2, cycles, other, maker.stack({main, maker.named("operator<<(std::ostream&; \"x\")")}), 1, 10);
    maker.row(2, faults, one, maker.stack({main}), 4, 4);
    Store store;
    REQUIRE(store.apply(maker.take()));
    return store;
}

TEST_CASE("folded stacks: sorted, equal lines merged, separators escaped") {
    const Store store = small_store();
    CHECK(collapsed(store, {.event = 1}) ==
          "a:b c;main;operator<<(std::ostream&: \"x\") 1\n"
          "pool;main;get 5\n");
    CHECK(collapsed(store, {.event = 1}, {.weights = true}) ==
          "a:b c;main;operator<<(std::ostream&: \"x\") 10\n"
          "pool;main;get 50\n");
    CHECK(collapsed(store, {}) ==
          "cycles;a:b c;main;operator<<(std::ostream&: \"x\") 1\n"
          "cycles;pool;main;get 5\n"
          "page-faults;pool;main 4\n");
    CHECK(collapsed(store, {.event = 1, .tids = {7}}) == "pool;main;get 3\n");
    CHECK(collapsed(store, {.event = 9}).empty());
}

TEST_CASE("folded stacks beyond the size limit are summed") {
    const Store store = small_store();
    CHECK(collapsed(store, {.event = 1}, {.max_bytes = 1}) ==
          "a:b c;[export limit] 1\n"
          "pool;[export limit] 3\n"
          "pool;main;get 2\n");
}

TEST_CASE("exports have a bound, also within one stack") {
    BatchMaker maker;
    const wire::Id event = maker.event("cycles", "cycles");
    const wire::Id thread = maker.thread(maker.process(5), 6, "deep");
    const wire::Id frame = maker.named(std::string(20'000, 'n'));
    maker.row(1, event, thread, maker.stack(std::vector<wire::Id>(5'000, frame)), 3);
    Store store;
    REQUIRE(store.apply(maker.take()));
    // 25 KB of data would become 100 MB of text.
    CHECK(collapsed(store, {}) == "deep;[export limit] 3\n");
    constexpr std::size_t most = std::size_t{1} << 20;
    const std::string sentence = "would have more than 1 MiB: take a shorter time, one event or one thread";
    for (const Result<std::string>& text :
         {svg(store, {}, {.max_bytes = most}), json(store, {}, {.max_bytes = most})}) {
        REQUIRE_FALSE(text);
        CHECK(text.error().code == ErrorCode::too_large);
        CHECK(text.error().message.ends_with(sentence));
    }
    // Formats that store each name once are small, and are bounded too.
    constexpr std::size_t less = 10'000;
    for (const Result<std::string>& text :
         {csv(store, {}, less), speedscope(store, {}, "x", less), firefox(store, {}, {.name = "x", .max_bytes = less}),
          pprof(store, {}, {.max_bytes = 4'000})}) {
        REQUIRE_FALSE(text);
        CHECK(text.error().code == ErrorCode::too_large);
    }
    CHECK(csv(store, {}).value().size() < 2 * most);
    CHECK(speedscope(store, {}, "x").value().size() < 2 * most);
    CHECK(firefox(store, {}, {.name = "x"}).value().size() < 2 * most);
    CHECK(pprof(store, {}).has_value());
}

TEST_CASE("bytes become valid UTF-8") {
    CHECK(valid_utf8("plain \xc3\xa4 \xe2\x82\xac \xf0\x9f\x94\xa5") == "plain \xc3\xa4 \xe2\x82\xac \xf0\x9f\x94\xa5");
    const std::string r = "\xef\xbf\xbd";
    CHECK(valid_utf8("a\xff"
                     "b") == "a" + r + "b");
    CHECK(valid_utf8("\xc3") == r);                          // cut
    CHECK(valid_utf8("\xc0\xaf") == r + r);                  // overlong
    CHECK(valid_utf8("\xed\xa0\x80") == r + r + r);          // surrogate
    CHECK(valid_utf8("\xf4\x90\x80\x80") == r + r + r + r);  // beyond U+10FFFF
    CHECK(xml_text("a<b> & \"c\" 'd'\n\x01") == "a&lt;b&gt; &amp; &quot;c&quot; &#39;d&#39; " + r);
    CHECK(first_characters("\xc3\xa4"
                           "bc",
                           2) ==
          "\xc3\xa4"
          "b");
    CHECK(first_characters("ab", 5) == "ab");
}

TEST_CASE("the JSON document contains functions and flame graph of every event") {
    rapidjson::Document document;
    const std::string text = json(small_store(), {}).value();
    document.Parse<rapidjson::kParseValidateEncodingFlag>(text.data(), text.size());
    REQUIRE_FALSE(document.HasParseError());
    CHECK(document["metadata"]["samples"].GetUint64() == 10);
    const auto& events = document["events"];
    REQUIRE(events.Size() == 2);
    CHECK(events[0]["name"] == "cycles");
    CHECK(events[0]["samples"].GetUint64() == 6);
    CHECK(events[0]["weight"].GetUint64() == 60);
    const auto& functions = events[0]["functions"];
    REQUIRE(functions.Size() == 4);
    CHECK(functions[0]["name"] == "get");
    CHECK(functions[0]["module"] == "libb.so");
    CHECK(functions[0]["self_samples"].GetUint64() == 3);
    const auto& root = events[0]["flamegraph"];
    CHECK(root["value"].GetUint64() == 6);
    REQUIRE(root["children"].Size() == 1);
    const auto& main = root["children"][0];
    CHECK(main["name"] == "main");
    CHECK(main["self"].GetUint64() == 0);
    CHECK(main["weight"].GetUint64() == 60);
    REQUIRE(main["children"].Size() == 3);
    CHECK(main["children"][0]["value"].GetUint64() == 3);
    CHECK(main["children"][0]["kind"] == "user");
    CHECK(events[1]["flamegraph"]["children"][0]["self"].GetUint64() == 4);
}

static Store nasty_store() {
    BatchMaker maker;
    const wire::Id event = maker.event("cycles", "cycles");
    const wire::Id thread = maker.thread(maker.process(5), 6, "x\xff\x01");
    std::vector<wire::Id> path;
    for (int i = 0; i < 2'000; ++i) path.push_back(maker.named("f<int>&\"'" + std::to_string(i % 7)));
    path.push_back(maker.named("bytes \xff\xfe\x01 ]]> --> \xef\xbf\xbf"));
    maker.row(1, event, thread, maker.stack(path), 1'999, 1'999);
    maker.row(1, event, thread, maker.stack({maker.named("narrow")}), 1, 1);
    Store store;
    REQUIRE(store.apply(maker.take()));
    return store;
}

TEST_CASE("stacks 2,000 deep and unusual names make valid documents") {
    const Store store = nasty_store();
    const std::string text = json(store, {}).value();
    rapidjson::Document document;
    document.Parse<rapidjson::kParseIterativeFlag | rapidjson::kParseValidateEncodingFlag>(text.data(), text.size());
    CHECK_FALSE(document.HasParseError());

    const std::string picture = svg(store, {}, {.title = "a <b> & \xff"}).value();
    CHECK(picture.find("<svg") != std::string::npos);
    CHECK(picture.find("a &lt;b&gt; &amp; \xef\xbf\xbd") != std::string::npos);
    CHECK(picture.find("f&lt;int&gt;&amp;&quot;&#39;0, 1999 samples, 99.95%") != std::string::npos);
    CHECK(picture.find("narrow") == std::string::npos);  // 1180 px / 2000: narrower than a pixel
    // Python's expat, an independent XML parser, reads it.
    const std::string path =
        std::filesystem::temp_directory_path() / ("flamewire-" + std::to_string(::getpid()) + ".svg");
    std::ofstream(path) << picture;
    CHECK(std::system(
              ("python3 -c 'import sys, xml.dom.minidom; xml.dom.minidom.parse(sys.argv[1])' " + path).c_str()) == 0);
    std::filesystem::remove(path);
}

TEST_CASE("an SVG has one box per frame, side by side, with text that fits") {
    const std::string picture = svg(small_store(), {.event = 1}, {.width_px = 1220}).value();
    // 1200 px for 60 cycles: get (libb) 600, get (liba) 400, operator<< 200.
    CHECK(picture.find("<title>all, 6 samples, 100.00%</title><rect x=\"10.00\"") != std::string::npos);
    CHECK(
        picture.find("<title>get [libb.so], 3 samples, 50.00%</title><rect x=\"10.00\" y=\"34.0\" width=\"600.00\"") !=
        std::string::npos);
    CHECK(
        picture.find("<title>get [liba.so], 2 samples, 33.33%</title><rect x=\"610.00\" y=\"34.0\" width=\"400.00\"") !=
        std::string::npos);
    CHECK(picture.find("<rect x=\"1010.00\" y=\"34.0\" width=\"200.00\"") != std::string::npos);
    CHECK(picture.find(">operator&lt;&lt;(std::ostream&amp;;..</text>") != std::string::npos);
    CHECK(svg(Store(), {}).value().find("</svg>") != std::string::npos);
}

TEST_CASE("exports mark stacks that are not whole") {
    BatchMaker maker;
    const wire::Id event = maker.event("cycles", "cycles");
    const wire::Id process = maker.process(5);
    const wire::Id leaf = maker.named("leaf", maker.module("/bin/app"));
    maker.row(1, event, maker.thread(process, 6), maker.stack({maker.named("[truncated]"), leaf}), 4, 4);
    maker.batch().recording = wire::Recording{};
    maker.batch().recording->unwind = "auto";
    maker.batch().recording->stack_bytes = 16'384;
    maker.batch().recording->max_depth = 1024;
    wire::ProcessUnwind unwind;
    unwind.process = process;
    unwind.mode = wire::StackMode::dwarf;
    unwind.why = "no frame pointers";
    unwind.samples = unwind.truncated = 4;
    maker.batch().unwinds = {unwind};
    Store store;
    REQUIRE(store.apply(maker.take()));

    rapidjson::Document document;
    const std::string text = json(store, {}).value();
    document.Parse(text.data(), text.size());
    const auto& metadata = document["metadata"];
    CHECK(metadata["unwind"] == "auto");
    CHECK(metadata["stack_bytes"].GetUint() == 16'384);
    CHECK(metadata["max_depth"].GetUint() == 1024);
    REQUIRE(metadata["unwind_processes"].Size() == 1);
    CHECK(metadata["unwind_processes"][0]["pid"].GetUint() == 5);
    CHECK(metadata["unwind_processes"][0]["mode"] == "dwarf");
    CHECK(metadata["unwind_processes"][0]["why"] == "no frame pointers");
    CHECK(metadata["unwind_processes"][0]["truncated"].GetUint64() == 4);
    CHECK(metadata["unwind_processes"][0]["whole"].GetUint64() == 0);

    const std::string picture = svg(store, {}).value();
    CHECK(picture.find("<title>[truncated]: callers of these stacks are missing, 4 samples, 100.00%</title>") !=
          std::string::npos);
    CHECK(picture.find("stroke-dasharray") != std::string::npos);
    CHECK(svg(small_store(), {}).value().find("stroke-dasharray") == std::string::npos);
}

}  // namespace flamewire::profile
