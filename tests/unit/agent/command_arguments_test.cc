#include "agent/command_arguments.h"

#include <catch2/catch.hpp>

using namespace flamewire::agent;

namespace {

rapidjson::Document parsed(const char* text) {
    rapidjson::Document document;
    document.Parse(text);
    return document;
}

}  // namespace

TEST_CASE("the first wrong argument is the problem of a command") {
    const rapidjson::Document json = parsed(R"({"pid":0,"name":7,"all":"yes","by":"cpu"})");
    Arguments args(json);
    CHECK(args.text("by") == "cpu");
    CHECK(args.check());
    CHECK_FALSE(args.text("name"));
    CHECK_FALSE(args.flag("all"));
    (void)args.number("pid", 1, 9);
    args.refuse("pid required");
    const auto checked = args.check();
    REQUIRE_FALSE(checked);
    CHECK(checked.error().message == "name must be a string");
}

TEST_CASE("null and absent arguments are equal") {
    const rapidjson::Document json = parsed(R"({"pid":null,"pids":null,"events":null,"cpus":null})");
    Arguments args(json);
    CHECK_FALSE(args.number32("pid", 1, 9));
    CHECK_FALSE(args.events("events"));
    CHECK(args.pids().empty());
    CHECK_FALSE(args.wide().given());
    CHECK(args.check());
}
