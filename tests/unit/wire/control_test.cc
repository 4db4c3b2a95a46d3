#include "wire/control.h"

#include <catch2/catch.hpp>

#include "base/utf8.h"

using namespace flamewire;
using namespace flamewire::wire;

namespace {

RecordingId id_of(std::uint8_t first) {
    RecordingId id{};
    id[0] = first;
    return id;
}

}  // namespace

TEST_CASE("commands") {
    auto command = parse_command(R"({"id":"7f","cmd":"start","args":{"pid":42},"new":[1]})");
    REQUIRE(command);
    CHECK(command->id == "7f");
    CHECK(command->name == "start");
    CHECK(number_member(command->args, "pid") == 42);
    CHECK(encode_command("7f", "start", command->args) == R"({"id":"7f","cmd":"start","args":{"pid":42}})");
    REQUIRE(parse_command(R"({"id":"1","cmd":"ping"})"));
    CHECK(parse_command(R"({"id":"1","cmd":"ping","args":null})")->args.IsObject());

    for (const char* bad : {"", "{", "[]", "1", "null", R"({"cmd":"ping"})", R"({"id":1,"cmd":"ping"})",
                            R"({"id":"","cmd":"x"})", R"({"id":"1"})", R"({"id":"1","cmd":"x","args":[]})",
                            R"({"id":"1","cmd":"x"} {})", "{\"id\":\"1\",\"cmd\":\"\xff\"}"})
        CHECK(parse_command(bad).error().code == ErrorCode::invalid);
    CHECK_FALSE(parse_command(R"({"id":")" + std::string(129, 'x') + R"(","cmd":"ping"})"));
}

TEST_CASE("a command with an id that no reply can contain is refused") {
    CHECK_FALSE(parse_command(R"({"id":"a\ude00","cmd":"ping"})").has_value());
    CHECK_FALSE(parse_command(R"({"id":"a","cmd":"pi\udc00ng"})").has_value());
    CHECK_FALSE(parse_command(R"({"id":"a","cmd":"start","args":{"x":[{"\udddf":1}]}})").has_value());
    CHECK(parse_command(R"({"id":"\ud83d\ude00","cmd":"ping"})").has_value());
}

TEST_CASE("error replies are JSON whatever the text contains") {
    CHECK(encode_error_reply("a", "no \"such\" pid\n") == R"({"id":"a","ok":false,"error":"no \"such\" pid\n"})");
    CHECK(encode_error_reply("a", "caf\xe9") == "{\"id\":\"a\",\"ok\":false,\"error\":\"caf\xef\xbf\xbd\"}");
}

TEST_CASE("acknowledgments") {
    const std::string text = R"({"recording":"ab000000000000000000000000000000","seq":12})";
    CHECK(encode_ack({id_of(0xab), 12}) == text);
    CHECK(encode_ack({std::nullopt, 0}) == R"({"recording":null,"seq":0})");
    auto ack = parse_ack(text);
    REQUIRE(ack);
    CHECK(ack->recording == id_of(0xab));
    CHECK(ack->seq == 12);
    CHECK_FALSE(parse_ack(R"({"recording":null,"seq":0})")->recording);
    CHECK(parse_ack(R"({"seq":18446744073709551615})")->seq == 18446744073709551615ULL);
    for (const char* bad : {R"({"recording":null})", R"({"seq":-1})", R"({"seq":1.5})", R"({"recording":"ab","seq":1})",
                            R"({"recording":7,"seq":1})"})
        CHECK_FALSE(parse_ack(bad));
}

TEST_CASE("depth and size are bounded") {
    const auto nested = [](std::size_t depth) {
        return R"({"a":)" + std::string(depth, '[') + std::string(depth, ']') + "}";
    };
    CHECK(parse_object(nested(63)));
    CHECK_FALSE(parse_object(nested(64)));
    CHECK_FALSE(parse_object(nested(100'000)));
    CHECK_FALSE(parse_object(std::string(200'000, '[')));
    CHECK(parse_object(R"({"a":"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[\"[[[["})"));
    const auto of_bytes = [](std::size_t size) { return R"({"a":")" + std::string(size - 8, 'x') + R"("})"; };
    CHECK(parse_object(of_bytes(std::size_t{4} << 20)));
    CHECK(parse_object(of_bytes((std::size_t{4} << 20) + 1)).error().code == ErrorCode::too_large);
}

TEST_CASE("members of the wrong type count as missing") {
    const auto object = parse_object(R"({"n":-1,"t":5,"l":["a",1,"b"]})");
    REQUIRE(object);
    CHECK(number_member(*object, "n", 9) == 9);
    CHECK(text_member(*object, "t").empty());
    CHECK(texts_member(*object, "l") == std::vector<std::string>{"a", "b"});
    CHECK(texts_member(*object, "nothing").empty());
}

TEST_CASE("valid_utf8 keeps valid bytes and replaces the rest byte by byte") {
    CHECK(valid_utf8("plain") == "plain");
    CHECK(valid_utf8("gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x94\xa5") ==
          "gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x94\xa5");
    CHECK(valid_utf8("a\xffz") == "a\xef\xbf\xbdz");
    CHECK(valid_utf8("\xe2\x82") == "\xef\xbf\xbd\xef\xbf\xbd");
    CHECK(valid_utf8("\xc0\x80") == "\xef\xbf\xbd\xef\xbf\xbd");
    CHECK(valid_utf8(std::string_view("a\0b", 3)) == std::string_view("a\0b", 3));
}

TEST_CASE("hello") {
    Hello hello;
    hello.agent_version = "0.1.0";
    hello.agent_id = "b1";
    hello.platform = {.arch = "x86_64",
                      .endian = "little",
                      .kernel = "6.1",
                      .hostname = "board",
                      .page_size = 4096,
                      .cpus = 2,
                      .boot_id = "b-1",
                      .perf_event_paranoid = -1,
                      .pmus = {"cpu"},
                      .clock = "monotonic"};
    hello.capabilities = {
        .record_events = {"cycles"}, .stat_only_events = {}, .callgraph_method = "fp", .unwind_modes = {"fp"}};
    hello.state = "profiling";
    hello.recording = Hello::Kept{id_of(1), 3, 9};
    const std::string text =
        R"({"type":"hello","version":1,"agent":"flamewire","agent_version":"0.1.0","agent_id":"b1","platform":{"arch":"x86_64",)"
        R"("endian":"little","kernel":"6.1","hostname":"board","page_size":4096,"cpus":2,"boot_id":"b-1","perf_event_paranoid":-1,)"
        R"("pmus":["cpu"],"clock":"monotonic"},"capabilities":{"record_events":["cycles"],"stat_only_events":[],)"
        R"("callgraph_method":"fp","unwind_modes":["fp"]},"state":"profiling",)"
        R"("recording":{"id":"01000000000000000000000000000000","first_unacknowledged":3,"last_seq":9}})";
    CHECK(encode_hello(hello) == text);
    const auto back = parse_hello(text);
    REQUIRE(back);
    CHECK(encode_hello(*back) == text);

    // The hello of an older agent with this protocol.
    const auto other = parse_hello(
        R"({"type":"hello","version":1,"agent":"other","platform":{"arch":"armv7l","perf_event_paranoid":2}})");
    REQUIRE(other);
    CHECK(other->platform.arch == "armv7l");
    CHECK(other->state == "idle");
    CHECK_FALSE(other->recording);
    CHECK_FALSE(parse_hello(R"({"type":"bye","version":1})"));
    CHECK_FALSE(parse_hello(R"({"type":"hello","version":"1"})"));
    CHECK_FALSE(parse_hello(R"({"type":"hello","version":1,"recording":{"id":"12"}})"));
}
