#include "server/link/perflens_messages.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/json_writer.h"
#include "wire/control.h"

namespace flamewire::server {
namespace {

using rapidjson::Document;
using rapidjson::Value;

// Default length of one PerfLens chunk, in seconds. Its own default, 8, would delay what the page shows by that much.
constexpr std::uint64_t chunk_seconds = 2;
constexpr std::array known_commands{"ping",        "status",  "list_processes", "verify_pid",
                                    "verify_perf", "reprobe", "start",          "stop",
                                    "pause",       "resume",  "configure",      "configure_metrics"};

template <class T>
void put(Document& document, Value& object, const char* name, T&& value) {
    object.RemoveMember(name);
    object.AddMember(rapidjson::StringRef(name), std::forward<T>(value), document.GetAllocator());
}

Value text_value(Document& document, std::string_view text) {
    return Value(text.data(), static_cast<rapidjson::SizeType>(text.size()), document.GetAllocator());
}

// "a,b" or ["a","b"] as a list.
Value event_list(Document& document, const Value& events) {
    Value list(rapidjson::kArrayType);
    if (events.IsArray()) {
        list.CopyFrom(events, document.GetAllocator());
    } else if (events.IsString()) {
        std::string_view rest(events.GetString(), events.GetStringLength());
        while (!rest.empty()) {
            const std::string_view one = rest.substr(0, rest.find(','));
            if (!one.empty()) list.PushBack(text_value(document, one), document.GetAllocator());
            rest.remove_prefix(std::min(one.size() + 1, rest.size()));
        }
    }
    return list;
}

Result<bool> translate_settings(std::string_view name, const Value& args, Document& out) {
    Value& into = out["args"];
    for (const char* number : {"frequency", "pid"})
        if (const auto found = args.FindMember(number); found != args.MemberEnd() && found->value.IsUint64())
            put(out, into, number, Value(found->value.GetUint64()));
    if (const auto pids = args.FindMember("pids"); pids != args.MemberEnd() && pids->value.IsArray()) {
        if (pids->value.Size() != 1 || !pids->value[0].IsUint64())
            return fail(ErrorCode::invalid, "a PerfLens agent profiles one process at a time: choose one");
        put(out, into, "pid", Value(pids->value[0].GetUint64()));
    }
    if (name == "start" && !into.HasMember("pid"))
        return fail(ErrorCode::invalid,
                    "a PerfLens agent takes a process by its number: choose one of the list of processes");
    if (name == "configure" && into.HasMember("pid"))
        return fail(ErrorCode::invalid,
                    "a PerfLens agent cannot go to another process while it records: stop it and start it there");
    // PerfLens's "duration" is the length of a chunk. It corresponds to our interval.
    const std::uint64_t interval_ms = wire::number_member(args, "interval");
    if (name == "start" || interval_ms != 0)
        put(out, into, "duration",
            Value(interval_ms != 0 ? std::clamp<std::uint64_t>((interval_ms + 999) / 1000, 1, 300) : chunk_seconds));
    if (const auto events = args.FindMember("events"); events != args.MemberEnd())
        if (Value list = event_list(out, events->value); !list.Empty()) put(out, into, "events", std::move(list));
    return true;
}

void complete_process_list(Document& reply) {
    const auto list = reply.FindMember("processes");
    if (list == reply.MemberEnd() || !list->value.IsArray()) return;
    for (Value& process : list->value.GetArray()) {
        if (!process.IsObject()) continue;
        put(reply, process, "ns_pid", Value(0));
        put(reply, process, "user", Value(""));
        put(reply, process, "container", Value(""));
    }
}

void complete_start(Document& reply) {
    const std::uint64_t pid = wire::number_member(reply, "pid");
    Value pids(rapidjson::kArrayType), notices(rapidjson::kArrayType);
    pids.PushBack(Value(pid), reply.GetAllocator());
    put(reply, reply, "pids", std::move(pids));
    put(reply, reply, "target", text_value(reply, fmt::format("pid {}", pid)));
    put(reply, reply, "effective_frequency", Value(wire::number_member(reply, "frequency")));
    put(reply, reply, "interval", Value(wire::number_member(reply, "duration") * 1000));
    put(reply, reply, "duration", Value(0));
    put(reply, reply, "unwind", text_value(reply, wire::text_member(reply, "callgraph")));
    put(reply, reply, "notices", std::move(notices));
}

}  // namespace

bool is_perflens_hello(const Document& hello) {
    return wire::text_member(hello, "type") == "hello" && wire::text_member(hello, "agent") == "perflens";
}

std::string hello_of_perflens(const Document& hello) {
    wire::Hello ours;
    ours.agent = "perflens";
    ours.agent_version = wire::text_member(hello, "agent_version");
    if (const auto platform = hello.FindMember("platform");
        platform != hello.MemberEnd() && platform->value.IsObject()) {
        ours.platform.arch = wire::text_member(platform->value, "arch");
        ours.platform.kernel = wire::text_member(platform->value, "kernel");
        if (const auto paranoid = platform->value.FindMember("perf_event_paranoid");
            paranoid != platform->value.MemberEnd() && paranoid->value.IsInt())
            ours.platform.perf_event_paranoid = paranoid->value.GetInt();
    }
    ours.capabilities.record_events = {"cycles",           "instructions",  "cache-misses",
                                       "cache-references", "branch-misses", "branch-instructions"};
    ours.capabilities.stat_only_events = {"page-faults", "context-switches", "cpu-migrations"};
    ours.capabilities.unwind_modes = {"auto"};
    return wire::encode_hello(ours);
}

wire::Recording recording_of_perflens(const Document& hello, std::string_view host) {
    wire::Recording metadata;
    metadata.target = "PerfLens";
    metadata.host = host;
    metadata.agent_version = "PerfLens " + wire::text_member(hello, "agent_version");
    if (const auto platform = hello.FindMember("platform");
        platform != hello.MemberEnd() && platform->value.IsObject()) {
        metadata.arch = wire::text_member(platform->value, "arch");
        metadata.kernel_release = wire::text_member(platform->value, "kernel");
    }
    return metadata;
}

Result<std::string> command_for_perflens(std::string_view id, std::string_view name, const Value& args) {
    if (std::ranges::find(known_commands, name) == known_commands.end())
        return fail(ErrorCode::unsupported,
                    fmt::format("a PerfLens agent has no command {:.40}: flamewire-agent on the target has", name));
    Document out(rapidjson::kObjectType);
    put(out, out, "id", text_value(out, id));
    put(out, out, "cmd", text_value(out, name));
    put(out, out, "args", Value(rapidjson::kObjectType));
    if (name == "start" || name == "configure")
        TRY(translate_settings(name, args, out));
    else if (args.IsObject())
        out["args"].CopyFrom(args, out.GetAllocator());
    return to_json(out);
}

std::string auth_for_perflens(std::string_view id, std::string_view token) {
    Document out(rapidjson::kObjectType);
    put(out, out, "id", text_value(out, id));
    put(out, out, "cmd", Value("auth"));
    Value args(rapidjson::kObjectType);
    put(out, args, "token", text_value(out, token));
    put(out, out, "args", std::move(args));
    return to_json(out);
}

std::string reply_of_perflens(std::string_view command, const Document& received) {
    Document::AllocatorType memory;
    Document reply(&memory);
    reply.CopyFrom(received, memory);
    const auto ok = reply.FindMember("ok");
    if (ok == reply.MemberEnd() || !ok->value.IsBool() || !ok->value.GetBool()) {
        if (wire::text_member(reply, "error") == "unauthenticated")
            put(reply, reply, "error",
                Value("the PerfLens agent requires its pairing code: start the server with --perflens-token CODE, "
                      "which it "
                      "printed when it started"));
        return to_json(reply);
    }
    if (command == "list_processes") complete_process_list(reply);
    if (command == "start") complete_start(reply);
    if (command == "verify_pid") {
        const auto exists = reply.FindMember("exists");
        put(reply, reply, "permitted",
            Value(exists != reply.MemberEnd() && exists->value.IsBool() && exists->value.GetBool()));
        put(reply, reply, "problem", Value());
    }
    return to_json(reply);
}

std::string metrics_of_perflens(std::string_view json, std::uint64_t mono_ns) {
    auto frame = wire::parse_object(json);
    if (!frame) return {};
    put(*frame, *frame, "mono_ns", Value(mono_ns));
    return to_json(*frame);
}

}  // namespace flamewire::server
