#include "server/link/module_fetcher.h"

#include <fmt/format.h>
#include <rapidjson/document.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/hex.h"
#include "base/path.h"
#include "symbol/files/fetched_file.h"
#include "wire/control.h"
#include "wire/module_chunk.h"

namespace flamewire::server {
namespace {

constexpr std::size_t first_bytes = 32U << 10, least_bytes = 8U << 10;
constexpr std::chrono::milliseconds quick_part{125}, slow_part{500};
constexpr std::chrono::seconds part_time{60};
constexpr std::chrono::seconds retry_pause{10};

}  // namespace

// Several boards of one key can run the same files. The first agent that is asked sends the file for all of them.
bool ModuleFetcher::is_fetching(const symbol::ModuleIdentity& module) const {
    const std::string name = symbol::fetched_path("/", module);
    return std::ranges::any_of(registry_.agents(), [&](const auto& agent) {
        const PeerPtr& peer = agent.second.peer;
        return peer && peer->fetching && symbol::fetched_path("/", peer->fetching->identity) == name;
    });
}

// Fetches one module at a time: the first that was not refused and that no other agent is sending.
void ModuleFetcher::fetch(const PeerPtr& peer) {
    if (policy_.store == nullptr) return;
    if (peer->fetching || AgentPeer::Clock::now() < peer->next_fetch_at) return;
    for (WantedModule& wanted : peer->session->symbols().wanted_modules()) {
        if (peer->fetch_refused.contains(wanted.id) || is_fetching(wanted.identity)) continue;
        peer->fetching = AgentPeer::Fetching{peer->session, wanted.id, std::move(wanted.identity), {}, first_bytes, {}};
        const symbol::ModuleIdentity identity = peer->fetching->identity;
        threads_.run([this, identity] { return policy_.store->offset(identity); },
                     [this, peer](std::uint64_t offset) { request_part(peer, offset); });
        return;
    }
}

void ModuleFetcher::request_part(const PeerPtr& peer, std::uint64_t offset) {
    if (!peer->fetching || stopping_) return;
    if (!peer->open) return end(*peer, ModuleFetch::State::interrupted, "the agent disconnected");
    AgentPeer::Fetching& fetching = *peer->fetching;
    rapidjson::Document args(rapidjson::kObjectType);
    auto& memory = args.GetAllocator();
    const std::string build_id = to_hex(fetching.identity.build_id);
    const auto text = [&](const char* name, const std::string& value) {
        args.AddMember(rapidjson::StringRef(name), rapidjson::Value(value.c_str(), memory), memory);
    };
    text("build_id", build_id);
    text("path", fetching.identity.path);
    args.AddMember("size", fetching.identity.size, memory);
    args.AddMember("mtime_ns", fetching.identity.mtime_ns, memory);
    args.AddMember("offset", offset, memory);
    args.AddMember("bytes", static_cast<std::uint64_t>(fetching.bytes), memory);
    if (fetching.progress.total == 0) {
        fetching.progress = {ModuleFetch::State::asked, offset, 0, ""};
        report(fetching);
    }
    fetching.requested_at = AgentPeer::Clock::now();
    const std::string id = commands_.send(peer->agent_id, "fetch_module", args, part_time,
                                          [this, peer](const CommandAnswer& answer) { handle_failure(*peer, answer); });
    if (peer->fetching) peer->fetching->command = id;
}

void ModuleFetcher::handle_failure(AgentPeer& peer, const CommandAnswer& answer) {
    if (!peer.fetching) return;
    peer.next_fetch_at = AgentPeer::Clock::now() + retry_pause;
    if (answer.kind != CommandAnswer::Kind::reply) return end(peer, ModuleFetch::State::interrupted, answer.text);
    const auto reply = wire::parse_object(answer.text);
    const std::string code = reply ? wire::text_member(*reply, "code") : "";
    const std::string why = reply ? wire::text_member(*reply, "error") : "the agent refused without a reason";
    if (code == "busy") return end(peer, ModuleFetch::State::interrupted, why);
    // An older agent does not have this command.
    mark_refused(peer, code.empty() ? "the agent cannot send files (" + why + "): update it" : why);
}

void ModuleFetcher::mark_refused(AgentPeer& peer, const std::string& why) {
    spdlog::warn("agent {}: no file of {}: {}", peer.agent_id, peer.fetching->identity.path, why);
    peer.fetch_refused.insert(peer.fetching->module);
    end(peer, ModuleFetch::State::refused, why);
}

void ModuleFetcher::handle_chunk(const PeerPtr& peer, const std::string& payload) {
    auto chunk = wire::decode_module_chunk(payload);
    if (!chunk) return peer->connection->close("sends " + chunk.error().message);
    const bool current = peer->fetching && chunk->id == peer->fetching->command;
    if (!current || !commands_.discard(chunk->id)) return;  // given up
    AgentPeer::Fetching& fetching = *peer->fetching;
    const auto took = AgentPeer::Clock::now() - fetching.requested_at;
    if (took < quick_part) fetching.bytes = std::min(fetching.bytes * 2, wire::max_module_chunk);
    if (took > slow_part) fetching.bytes = std::max(fetching.bytes / 2, least_bytes);
    if (chunk->total > policy_.cap_bytes)
        return mark_refused(*peer,
                            fmt::format("its symbols have {} bytes, and this server accepts at most {}: start it with "
                                        "--fetch-cap {} (MiB)",
                                        chunk->total, policy_.cap_bytes, (chunk->total >> 20) + 1));
    threads_.run([this, identity = fetching.identity,
                  chunk = std::move(*chunk)] { return std::pair(policy_.store->add(identity, chunk), chunk.total); },
                 [this, peer](const std::pair<Result<ModuleStore::Progress>, std::uint64_t>& added) {
                     chunk_stored(peer, added.first, added.second);
                 });
}

void ModuleFetcher::chunk_stored(const PeerPtr& peer, const Result<ModuleStore::Progress>& added, std::uint64_t total) {
    if (!peer->fetching) return;
    AgentPeer::Fetching& fetching = *peer->fetching;
    if (!added) return mark_refused(*peer, "its file cannot be kept: " + added.error().message);
    fetching.progress = {ModuleFetch::State::arriving, added->got, total, ""};
    if (!added->whole) {
        report(fetching);
        return request_part(peer, added->got);
    }
    spdlog::info("agent {} sent {}: {} bytes", peer->agent_id, fetching.identity.path, total);
    peer->fetch_refused.insert(fetching.module);  // there is nothing more to fetch
    const symbol::ModuleIdentity identity = fetching.identity;
    end(*peer, ModuleFetch::State::arrived, "");
    events_.module_arrived(identity);
}

void ModuleFetcher::end(AgentPeer& peer, ModuleFetch::State state, const std::string& why) {
    if (!peer.fetching) return;
    AgentPeer::Fetching fetching = std::move(*peer.fetching);
    peer.fetching.reset();
    fetching.progress.state = state;
    fetching.progress.problem = why;
    report(fetching);
}

void ModuleFetcher::report(const AgentPeer::Fetching& fetching) {
    ModuleFetch progress = fetching.progress;
    progress.module = file_name(fetching.identity.path);
    fetching.session->symbols().set_fetch(fetching.module, std::move(progress));
    events_.session_changed(fetching.session);
}

}  // namespace flamewire::server
