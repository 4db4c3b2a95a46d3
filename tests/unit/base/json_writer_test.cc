#include "base/json_writer.h"

#include <catch2/catch.hpp>

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace flamewire {

TEST_CASE("JSON is valid UTF-8 whatever the names and texts are") {
    JsonWriter json;
    json.object().member("a\xff", "b\xc3").texts("list", std::vector<std::string>{"\x80", "\u00e9"}).end_object();
    CHECK(json.take() == "{\"a\uFFFD\":\"b\uFFFD\",\"list\":[\"\uFFFD\",\"\u00e9\"]}");
}

TEST_CASE("JSON numbers are exact, and NaN and infinity are 0") {
    JsonWriter json;
    json.object()
        .member("largest", std::numeric_limits<std::uint64_t>::max())
        .member("smallest", std::numeric_limits<std::int64_t>::min())
        .member("byte", std::uint8_t{200})
        .member("time", Decimal{1'234'000'000'001, 9})
        .member("half", 0.5)
        .member("nan", std::numeric_limits<double>::quiet_NaN())
        .member("infinity", -std::numeric_limits<double>::infinity())
        .member("flag", true)
        .member("none", nullptr)
        .member_if("missing", std::optional<std::uint32_t>())
        .member_if("given", std::optional<std::uint32_t>(3))
        .end_object();
    CHECK(json.take() ==
          R"({"largest":18446744073709551615,"smallest":-9223372036854775808,"byte":200,"time":1234.000000001,)"
          R"("half":0.5,"nan":0.0,"infinity":0.0,"flag":true,"none":null,"given":3})");
}

TEST_CASE("JSON parts nest") {
    JsonWriter json;
    json.object().array("rows").object().member("text", std::string("quoted \" and \n")).end_object().end_array();
    json.list("squares", std::vector{1, 2, 3}, [&](int n) { json.number(n * n); }).key("part").raw("[{}]").end_object();
    CHECK(json.take() == R"({"rows":[{"text":"quoted \" and \n"}],"squares":[1,4,9],"part":[{}]})");
}

}  // namespace flamewire
