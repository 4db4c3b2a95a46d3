#include "server/http/pairing_answers.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>

#include "base/json_writer.h"
#include "server/session/iso_time.h"

namespace flamewire::server {
namespace {

Answer list(const KeyRing& keys, const std::vector<AgentPtr>& agents) {
    JsonWriter json;
    const auto time = [&](std::string_view name, std::int64_t ns) {
        json.key(name);
        if (ns > 0)
            json.text(iso_time(ns));
        else
            json.null();
    };
    json.object();
    json.list("keys", keys.all(), [&](const KnownKey& key) {
        json.object();
        json.member("id", key.id);
        json.member("address", key.address);
        time("made", key.made_ns);
        time("used", key.used_ns);
        json.member("used_from", key.used_from);
        json.member("connected", std::ranges::any_of(agents, [&](const AgentPtr& agent) {
                        return agent->connected && agent->key == key.id;
                    }));
        json.end_object();
    });
    json.end_object();
    return json_answer(json.take());
}

// The only answer that contains a pairing code, for a user who is about to start an agent.
Answer next_code(KeyRing& keys, const std::string& target_command, const Request& request) {
    const auto key = keys.unused();
    if (!key) return error_answer(key.error());
    spdlog::info("the code of pairing key {} is shown to {}", key->id, request.remote);
    const std::string code = secure::pairing_code(*key);
    JsonWriter json;
    json.object();
    json.member("id", key->id);
    json.member("code", code);
    json.member("command", fmt::format("{} --pair {}", target_command, code));
    json.end_object();
    return json_answer(json.take());
}

}  // namespace

Answer pairing_answer(KeyRing& keys, const std::vector<AgentPtr>& agents, const std::string& target_command,
                      const Request& request) {
    if (request.method == "POST") return next_code(keys, target_command, request);
    if (request.method == "DELETE") {
        const std::string_view id = request.parameter("id");
        const auto gone = keys.withdraw(id);
        if (!gone) return error_answer(gone.error());
        if (!*gone) return error_answer(404, "not_found", fmt::format("there is no pairing key {:.40}", id));
        spdlog::info("pairing key {} was withdrawn by {}", id, request.remote);
    }
    return list(keys, agents);
}

}  // namespace flamewire::server
