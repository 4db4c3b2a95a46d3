#include "server/session/label.h"

#include <catch2/catch.hpp>

#include <fstream>

#include "recording.h"

using namespace flamewire;
using namespace flamewire::server;
using flamewire::test::ScratchDirectory;

namespace {

Label label_after(const Label& label, const std::string& json) {
    const auto change = parse_label_change(json);
    INFO(json);
    REQUIRE(change);
    return changed(label, *change).value();
}

bool refused(const Label& label, const std::string& json) {
    const auto change = parse_label_change(json);
    return !change || !changed(label, *change);
}

}  // namespace

TEST_CASE("a change of a label keeps the fields that it does not name") {
    Label label = label_after({}, R"({"name":"  before the fix ","tags":{"branch":"main","team":""}})");
    CHECK(label == Label{"before the fix", {{"branch", "main"}, {"team", ""}}, false});
    label = label_after(label, R"({"tags":{"branch":null,"build":" 17 ","never":null},"keep":true})");
    CHECK(label == Label{"before the fix", {{"build", "17"}, {"team", ""}}, true});
    label = label_after(label, R"({"name":"","keep":false})");
    CHECK(label == Label{"", {{"build", "17"}, {"team", ""}}, false});
    CHECK(label_after(label, "{}") == label);
}

TEST_CASE("labels are bounded, and one line of text") {
    const auto name = [](std::size_t size) { return R"({"name":")" + std::string(size, 'x') + R"("})"; };
    const auto key = [](std::size_t size) { return R"({"tags":{")" + std::string(size, 'x') + R"(":"v"}})"; };
    const auto value = [](std::size_t size) { return R"({"tags":{"k":")" + std::string(size, 'x') + R"("}})"; };
    CHECK_FALSE(refused({}, name(256)));
    CHECK(refused({}, name(257)));
    CHECK_FALSE(refused({}, key(64)));
    CHECK(refused({}, key(65)));
    CHECK_FALSE(refused({}, value(256)));
    CHECK(refused({}, value(257)));
    for (const char* json : {"", "[]", "7", R"({"name":7})", R"({"name":"a\nb"})", R"({"tags":[]})",
                             R"({"tags":{"k":7}})", R"({"tags":{"":"v"}})", R"({"tags":{"a=b":"v"}})",
                             R"({"tags":{"a b":"v"}})", R"({"tags":{"k":"a\tb"}})", R"({"keep":1})", R"({"nmae":"x"})"})
        CHECK(refused({}, json));
    Label full;
    for (int i = 0; i < 63; ++i) full.tags[std::to_string(i)] = "v";
    CHECK_FALSE(refused(full, R"({"tags":{"one-more":"v"}})"));
    full.tags["63"] = "v";
    CHECK(refused(full, R"({"tags":{"one-more":"v"}})"));
    CHECK_FALSE(refused(full, R"({"tags":{"one-more":"v","7":null}})"));
    CHECK_FALSE(refused(full, R"({"tags":{"7":"w"}})"));
}

TEST_CASE("a tag on the command line") {
    CHECK(parse_tag("build=17").value() == Tag{"build", "17"});
    CHECK(parse_tag("url=http://x/?a=b").value() == Tag{"url", "http://x/?a=b"});
    CHECK(parse_tag("empty=").value() == Tag{"empty", ""});
    for (const char* text : {"", "=", "=v", "word", "two words=v"}) CHECK_FALSE(parse_tag(text));
}

TEST_CASE("a label on disk has the values that were written, and the error of an invalid one names the file") {
    const ScratchDirectory folder;
    const std::string path = folder / "label.json";
    CHECK(read_label(path).value() == Label{});
    Label label{"n\"\xC3\xA9", {{"k", "v \\ \""}}, true};
    for (int i = 0; i < 63; ++i) label.tags[std::string(60, 'k') + std::to_string(i)] = std::string(256, 'v');
    REQUIRE(write_label(path, label));
    CHECK(read_label(path).value() == label);
    CHECK_FALSE(std::filesystem::exists(path + ".new"));
    for (const char* text :
         {"", "{", "{}", R"({"schema":2,"label":{}})", R"({"schema":1})", R"({"schema":1,"label":7})",
          R"({"schema":1,"label":{"name":7}})", "\xff\xfe", R"({"schema":1,"label":{"tags":{"":""}}})"}) {
        std::ofstream(path, std::ios::trunc) << text;
        const auto read = read_label(path);
        INFO(text);
        REQUIRE_FALSE(read);
        CHECK_THAT(read.error().message, Catch::Contains(path));
    }
    std::ofstream(path, std::ios::trunc) << std::string(1 << 20, ' ');
    CHECK_FALSE(read_label(path));
}
