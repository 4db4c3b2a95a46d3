// The agent's reply is untrusted: only what the API describes is passed on.
#include "server/http/agent_events.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <string>
#include <tuple>
#include <vector>

#include "base/json_writer.h"
#include "server/http/parameters.h"
#include "symbol/demangle.h"
#include "wire/control.h"

namespace flamewire::server {
namespace {

using rapidjson::Value;

constexpr std::chrono::seconds longest_wait{30};
constexpr std::array<std::string_view, 5> kinds{"tracepoint", "function", "usdt", "kernel-function", "file"};
constexpr std::size_t max_pids = 256, usual_limit = 100, max_limit = 500;
// The io thread demangles and sorts, which takes about 10 ms at most.
constexpr std::size_t max_received = 4'096, max_demangled_bytes = 1'024;

// What a request asks for, apart from the arguments of the agent.
struct Choice {
    std::string kind, search;
    std::size_t limit = usual_limit;
    bool describes = false;
};

void put_text(rapidjson::Document& args, const char* name, std::string_view text) {
    if (text.empty()) return;
    auto& memory = args.GetAllocator();
    args.AddMember(Value(name, memory), Value(text.data(), static_cast<rapidjson::SizeType>(text.size()), memory),
                   memory);
}

Result<rapidjson::Document> arguments_of(const Request& request, Choice& choice) {
    rapidjson::Document args(rapidjson::kObjectType);
    auto& memory = args.GetAllocator();
    const std::string_view kind = request.parameter("kind"), describe = request.parameter("describe");
    if (describe.empty() && std::ranges::find(kinds, kind) == kinds.end())
        return fail(ErrorCode::invalid, fmt::format("kind must be one of {}", fmt::join(kinds, ", ")));
    put_text(args, "kind", kind);
    put_text(args, "describe", describe);
    put_text(args, "search", request.parameter("q"));
    put_text(args, "file", request.parameter("file"));
    put_text(args, "container", request.parameter("container"));
    put_text(args, "cgroup", request.parameter("cgroup"));
    if (const std::string_view limit = request.parameter("limit"); !limit.empty()) {
        const std::uint64_t number = TRY(parse_integer("limit", limit));
        if (number == 0 || number > max_limit)
            return fail(ErrorCode::invalid, fmt::format("limit must be a whole number from 1 to {}", max_limit));
        choice.limit = number;
    }
    choice.kind = kind;
    choice.search = request.parameter("q");
    choice.describes = !describe.empty();
    Value pids(rapidjson::kArrayType);
    for (std::string_view rest = request.parameter("pid"); !rest.empty();) {
        const std::string_view one = rest.substr(0, rest.find(','));
        rest.remove_prefix(std::min(one.size() + 1, rest.size()));
        if (pids.Size() == max_pids)
            return fail(ErrorCode::invalid, fmt::format("pid: more than {} processes", max_pids));
        pids.PushBack(Value(TRY(parse_integer("pid", one))), memory);
    }
    if (!pids.Empty()) args.AddMember("pids", pids, memory);
    return args;
}

// An event of the reply.
struct Event {
    std::string name;  // demangled
    std::string symbol;
    std::string file;  // empty: the event is in none
    std::uint64_t offset = 0;
    std::string problem;  // why it cannot be probed
    int rank = 0;         // 0 is best
};

std::string lower(std::string_view text) {
    std::string result(text);
    std::ranges::transform(result, result.begin(),
                           [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
    return result;
}

// Without quotes, other characters may have a meaning in the grammar of events.
bool is_word(std::string_view text) {
    const std::string letters = lower(text);
    return !text.empty() && (text.front() < '0' || text.front() > '9') && std::ranges::all_of(letters, [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || std::string_view("_.$-:").contains(c);
    });
}

// The whole name, its last part, its start, or anywhere. Arguments are not part of a name.
int rank_of(const Event& event, std::string_view wanted) {
    const bool demangled = event.name != event.symbol;
    const std::string name = lower(event.name.substr(0, demangled ? event.name.find('(', 1) : std::string::npos));
    const std::string_view last = std::string_view(name).substr(name.find_last_of(":/.") + 1);
    if (name == wanted || lower(event.symbol) == wanted) return 0;
    if (last == wanted) return 1;
    return last.starts_with(wanted) || name.starts_with(wanted) ? 2 : 3;
}

std::string quoted(std::string_view file) { return fmt::format("@\"{}\"", file); }

// In the grammar of --events. `ambiguous`: another function has the same symbol, so it selects neither.
std::string event_text(const Event& event, std::string_view kind, bool ambiguous) {
    if (kind == "tracepoint") return event.symbol;
    if (kind == "kernel-function") return "kprobe:" + event.symbol;
    if (kind == "usdt") return "usdt:" + event.symbol + quoted(event.file);
    if (kind != "function") return {};
    if (ambiguous || !is_word(event.symbol)) return fmt::format("uprobe:{:#x}", event.offset) + quoted(event.file);
    return "uprobe:" + event.symbol + quoted(event.file);
}

std::string problem_of(const Event& event, std::string_view kind) {
    if (!event.problem.empty() || kind == "file") return event.problem;
    const bool named = kind == "function" || is_word(event.symbol);
    const bool quotable = std::ranges::none_of(
        event.file, [](char c) { return c == '"' || static_cast<unsigned char>(c) < ' ' || c == 0x7f; });
    return named && quotable ? "" : "has a name that an event cannot have";
}

auto order_of(const Event& event) { return std::tie(event.rank, event.name, event.symbol, event.file, event.offset); }
bool same_symbol(const Event& a, const Event& b) { return a.symbol == b.symbol && a.file == b.file; }

// Sorted, each once.
std::vector<Event> events_of(const Value& reply, std::string_view kind, std::string_view search) {
    const std::vector<std::string> files = wire::texts_member(reply, "files");
    const std::string wanted = lower(search);
    std::vector<Event> events;
    const auto list = reply.FindMember("events");
    if (list == reply.MemberEnd() || !list->value.IsArray()) return events;
    for (const Value& one : list->value.GetArray()) {
        if (!one.IsObject() || events.size() == max_received) continue;
        Event event;
        event.symbol = wire::text_member(one, "name");
        const bool mangled = kind == "function" && event.symbol.size() <= max_demangled_bytes;
        event.name = mangled ? symbol::demangle(event.symbol) : event.symbol;
        event.problem = wire::text_member(one, "problem");
        event.offset = wire::number_member(one, "offset");
        const std::uint64_t file = wire::number_member(one, "file");
        if (file < files.size()) event.file = files[file];
        event.rank = rank_of(event, wanted);
        events.push_back(std::move(event));
    }
    std::ranges::sort(events, {}, order_of);
    const auto rest = std::ranges::unique(events, {}, order_of);
    events.erase(rest.begin(), rest.end());
    return events;
}

bool flag_member(const Value& object, const char* name) {
    const auto member = object.FindMember(name);
    return member != object.MemberEnd() && member->value.IsTrue();
}

void write_list(JsonWriter& json, const Value& reply, const Choice& choice) {
    const std::vector<Event> events = events_of(reply, choice.kind, choice.search);
    const std::size_t received = wire::number_member(reply, "total");
    const auto* const list = reply.FindMember("events") == reply.MemberEnd() ? nullptr : &reply["events"];
    // The agent sends only a part of a long list, and counts places of USDT probes.
    const bool all = list != nullptr && list->IsArray() && list->Size() >= received;
    const std::size_t total = all ? events.size() : std::max(received, events.size());
    const std::size_t shown = std::min(events.size(), choice.limit);
    json.member("total", total).member("more", shown < total).array("events");
    for (std::size_t i = 0; i < shown; ++i) {
        const Event& event = events[i];
        const bool ambiguous = (i > 0 && same_symbol(event, events[i - 1])) ||
                               (i + 1 < events.size() && same_symbol(event, events[i + 1]));
        const std::string problem = problem_of(event, choice.kind);
        json.object().member("name", event.name);
        if (!event.file.empty()) json.member("file", event.file);
        if (!problem.empty()) json.member("problem", problem);
        if (problem.empty() && choice.kind != "file") json.member("event", event_text(event, choice.kind, ambiguous));
        json.end_object();
    }
    json.end_array();
}

Answer answer_of(const Answer& received, const Choice& choice) {
    if (received.status != 200) return received;
    const auto reply = wire::parse_object(received.body);
    if (!reply) return error_answer(502, "agent_unreachable", "the agent's answer is not JSON");
    if (!flag_member(*reply, "ok")) {
        const std::string error = wire::text_member(*reply, "error");
        if (error == "unknown command: list_events" || error.starts_with("a PerfLens agent has no command"))
            return error_answer(501, "not_supported", "this agent cannot list events: enter them, or update the agent");
        return error_answer(409, "agent_refused", error);
    }
    JsonWriter json;
    json.object().member("kernel_functions", flag_member(*reply, "kernel_functions"));
    if (choice.describes)
        json.member("description", wire::text_member(*reply, "description"));
    else
        write_list(json, *reply, choice);
    json.end_object();
    return json_answer(json.take());
}

}  // namespace

void agent_events_answer(const AgentCalls& calls, const Request& request, const Reply& reply) {
    Choice choice;
    const auto args = arguments_of(request, choice);
    if (!args) return reply(error_answer(args.error()));
    const auto agent = requested_agent(calls, request);
    if (!agent) return reply(agent.error());
    calls.command((*agent)->id, "list_events", *args, longest_wait,
                  [reply, choice](const Answer& answer) { reply(answer_of(answer, choice)); });
}

}  // namespace flamewire::server
