// Each command of the relay ends once, whatever its agent does.
#include "server/link/command_relay.h"

#include <catch2/catch.hpp>

#include <string>
#include <vector>

#include "server/limits.h"
#include "server/link/agent_peer.h"

using namespace flamewire;
using namespace flamewire::server;
using namespace std::chrono_literals;

namespace {

// A relay and one connected agent of PerfLens, whose commands need no socket.
struct Scene {
    AgentRegistry registry{[](const AgentInfo&) {}};
    std::vector<std::string> sent;  // ids
    CommandRelay relay{registry, [this](const PeerPtr&, const std::string& id, const std::string&,
                                        const rapidjson::Value&) { sent.push_back(id); }};
    std::vector<CommandAnswer> answers;

    Scene() {
        const PeerPtr peer = std::make_shared<AgentPeer>();
        peer->perflens = std::make_shared<AgentPeer::PerfLens>();
        registry.entry("board").peer = peer;
    }
    std::string send(const std::string& agent, std::chrono::milliseconds timeout = 1h) {
        const rapidjson::Value none(rapidjson::kObjectType);
        return relay.send(agent, "status", none, timeout, [this](CommandAnswer answer) { answers.push_back(answer); });
    }
};

}  // namespace

TEST_CASE("a reply ends a command of its agent once") {
    Scene scene;
    const std::string id = scene.send("board");
    CHECK(scene.sent == std::vector{id});
    CHECK(scene.relay.pending(id, "board") == "status");
    CHECK_FALSE(scene.relay.pending(id, "another"));
    scene.relay.finish(id, {CommandAnswer::Kind::reply, "{}", true});
    scene.relay.finish(id, {CommandAnswer::Kind::reply, "{}", true});
    scene.relay.agent_disconnected("board");
    REQUIRE(scene.answers.size() == 1);
    CHECK(scene.answers.front().ok);
    CHECK_FALSE(scene.relay.pending(id, "board"));
}

TEST_CASE("commands end at their deadline or when their agent disconnects") {
    Scene scene;
    const std::string late = scene.send("board", 0ms), other = scene.send("board");
    scene.relay.end_late();
    CHECK_FALSE(scene.relay.pending(late, "board"));
    CHECK(scene.relay.pending(other, "board"));
    REQUIRE(scene.answers.size() == 1);
    CHECK(scene.answers.back().kind == CommandAnswer::Kind::timeout);
    scene.relay.agent_disconnected("another");
    CHECK(scene.answers.size() == 1);
    scene.relay.agent_disconnected("board");
    REQUIRE(scene.answers.size() == 2);
    CHECK(scene.answers.back().kind == CommandAnswer::Kind::unreachable);
}

TEST_CASE("a discarded command gets no answer") {
    Scene scene;
    const std::string id = scene.send("board");
    CHECK(scene.relay.discard(id));
    CHECK_FALSE(scene.relay.discard(id));
    scene.relay.agent_disconnected("board");
    CHECK(scene.answers.empty());
}

TEST_CASE("commands that cannot be sent are answered at once") {
    Scene scene;
    CHECK(scene.send("absent").empty());
    for (std::size_t i = 0; i < limits::commands_of_agent; ++i) CHECK_FALSE(scene.send("board").empty());
    CHECK(scene.answers.size() == 1);
    CHECK(scene.send("board").empty());
    REQUIRE(scene.answers.size() == 2);
    CHECK(scene.answers.back().kind == CommandAnswer::Kind::unreachable);
    CHECK(scene.sent.size() == limits::commands_of_agent);
}
