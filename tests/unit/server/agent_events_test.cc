// The lists of an agent's events: what is sent to the agent, and what of its reply reaches the page.
#include <catch2/catch.hpp>

#include <string>
#include <vector>

#include "desk.h"
#include "wire/control.h"

namespace flamewire::server {
namespace {

using namespace test;

struct Connected : Desk {
    Connected() {
        AgentInfo agent;
        agent.id = "a";
        agent.connected = true;
        agents.push_back(std::make_shared<AgentInfo>(agent));
    }
    rapidjson::Document listed(const std::string& query, const std::string& reply) {
        agent_reply = reply;
        const Answer answer = agent_answer(get("/api/agent/events?" + query));
        CHECK(answer.status == 200);
        return wire::parse_object(answer.body).value();
    }
    std::string error(const std::string& query, int status, const std::string& code) {
        const Answer answer = agent_answer(get("/api/agent/events?" + query));
        CHECK(answer.status == status);
        const auto document = wire::parse_object(answer.body).value();
        CHECK(wire::text_member(document["error"], "code") == code);
        return wire::text_member(document["error"], "message");
    }
};

std::vector<std::string> members(const rapidjson::Document& answer, const char* name) {
    std::vector<std::string> texts;
    for (const auto& event : answer["events"].GetArray()) texts.push_back(wire::text_member(event, name));
    return texts;
}
using Texts = std::vector<std::string>;

TEST_CASE("a request for events becomes a command") {
    Connected desk;
    desk.listed("kind=function&q=a%20b&file=/x%20y/libc.so&pid=7,8&limit=3", R"({"ok":true,"events":[]})");
    CHECK(desk.sent == "a list_events 30000");
    CHECK(desk.sent_args == R"({"kind":"function","search":"a b","file":"/x y/libc.so","pids":[7,8]})");
    desk.listed("describe=sched:x&cgroup=/c", R"({"ok":true})");
    CHECK(desk.sent_args == R"({"describe":"sched:x","cgroup":"/c"})");
}

TEST_CASE("wrong requests for events are refused") {
    Connected desk;
    for (const char* query : {"", "kind=", "kind=x", "kind=file&pid=x", "kind=file&pid=1,,2", "kind=file&limit=0",
                              "kind=file&limit=501", "kind=file&limit=x"})
        desk.error(query, 400, "validation");
    CHECK(desk.sent.empty());
    desk.agents.clear();
    desk.error("kind=file", 409, "no_agent");
}

TEST_CASE("functions are demangled, sorted by how well they match, and written as events") {
    Connected desk;
    const auto answer = desk.listed("kind=function&q=Add&file=x", R"({"ok":true,"kernel_functions":true,"total":7,
        "files":["/bin/x","/bin/y"],"events":[
        {"name":"_ZN4shop7addressEv","offset":16,"file":0}, {"name":"loader","offset":17,"file":0},
        {"name":"_ZN4shop4Cart3addEi","offset":18,"file":1}, {"name":"add","offset":19,"file":0},
        {"name":"init_add","offset":32,"file":0}, {"name":"init_add","offset":33,"file":0},
        {"name":"net/http.(*S).add","offset":34,"file":0,"problem":""}]})");
    CHECK(members(answer, "name") == Texts{"add", "net/http.(*S).add", "shop::Cart::add(int)", "shop::address()",
                                           "init_add", "init_add", "loader"});
    CHECK(members(answer, "event") == Texts{R"(uprobe:add@"/bin/x")", R"(uprobe:0x22@"/bin/x")",
                                            R"(uprobe:_ZN4shop4Cart3addEi@"/bin/y")",
                                            R"(uprobe:_ZN4shop7addressEv@"/bin/x")", R"(uprobe:0x20@"/bin/x")",
                                            R"(uprobe:0x21@"/bin/x")", R"(uprobe:loader@"/bin/x")"});
    CHECK(answer["total"].GetUint() == 7);
    CHECK(answer["more"].IsFalse());
    CHECK(answer["kernel_functions"].IsTrue());
}

TEST_CASE("events of other kinds") {
    Connected desk;
    auto answer = desk.listed("kind=usdt&file=x", R"({"ok":true,"total":4,"files":["/b"],"events":[
        {"name":"p:n","file":0},{"name":"p:n","file":0},{"name":"p:a*","file":0},{"name":"p:x","file":9}]})");
    CHECK(members(answer, "name") == Texts{"p:a*", "p:n", "p:x"});
    CHECK(members(answer, "event") == Texts{"", R"(usdt:p:n@"/b")", R"(usdt:p:x@"")"});
    CHECK(members(answer, "problem") == Texts{"has a name that an event cannot have", "", ""});
    CHECK(answer["total"].GetUint() == 3);  // places of one probe are one event
    answer = desk.listed("kind=tracepoint", R"({"ok":true,"total":1,"events":[{"name":"sched:x"}]})");
    CHECK(members(answer, "event") == Texts{"sched:x"});
    answer = desk.listed("kind=kernel-function", R"({"ok":true,"total":1,"events":[{"name":"vfs_read"}]})");
    CHECK(members(answer, "event") == Texts{"kprobe:vfs_read"});
    answer = desk.listed("kind=file", R"({"ok":true,"total":1,"events":[{"name":"/a b"}]})");
    CHECK_FALSE(answer["events"][0].HasMember("event"));
    answer = desk.listed("describe=a:b", R"({"ok":true,"description":"text","events":[]})");
    CHECK(wire::text_member(answer, "description") == "text");
    CHECK_FALSE(answer.HasMember("events"));
}

TEST_CASE("a long list is cut") {
    Connected desk;
    std::string events;
    for (int i = 0; i < 5000; ++i)
        events += (i == 0 ? "" : ",") + std::string(R"({"name":"a:)") + std::to_string(i) + "\"}";
    const auto answer =
        desk.listed("kind=tracepoint&limit=500", R"({"ok":true,"total":9000,"events":[)" + events + "]}");
    CHECK(answer["events"].Size() == 500);
    CHECK(answer["total"].GetUint() == 9000);
    CHECK(answer["more"].IsTrue());
}

TEST_CASE("replies of odd agents") {
    Connected desk;
    for (const char* reply : {R"({"ok":true})", R"({"ok":true,"events":7,"files":8,"total":"x"})",
                              R"({"ok":true,"events":[7,null,{}],"files":[1]})"})
        CHECK(desk.listed("kind=function&file=x", reply).HasMember("events"));
    desk.agent_reply = "[]";
    desk.error("kind=file", 502, "agent_unreachable");
    desk.agent_reply = R"({"ok":false,"error":"unknown command: list_events"})";
    CHECK(desk.error("kind=file", 501, "not_supported") ==
          "this agent cannot list events: enter them, or update the agent");
    desk.agent_reply = R"({"ok":false,"error":"no such file"})";
    CHECK(desk.error("kind=file", 409, "agent_refused") == "no such file");
}

}  // namespace
}  // namespace flamewire::server
