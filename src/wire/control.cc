#include "wire/control.h"

#include <algorithm>
#include <cstring>

#include "base/hex.h"
#include "base/json_writer.h"
#include "base/utf8.h"

namespace flamewire::wire {
namespace {

constexpr std::size_t max_name_bytes = 128;  // of a command or its id

// RapidJSON's iterative parser cannot overflow the stack, but code that walks the parsed document is recursive.
bool nests_too_deeply(std::string_view json) {
    std::size_t depth = 0;
    bool in_string = false;
    for (std::size_t i = 0; i < json.size(); ++i) {
        const char c = json[i];
        if (in_string) {
            if (c == '\\') ++i;
            if (c == '"') in_string = false;
        } else if (c == '"') {
            in_string = true;
        } else if (c == '{' || c == '[') {
            if (++depth > max_json_depth) return true;
        } else if ((c == '}' || c == ']') && depth > 0) {
            --depth;
        }
    }
    return false;
}

const rapidjson::Value* member(const rapidjson::Value& object, const char* name) {
    const auto found = object.FindMember(name);
    return found == object.MemberEnd() ? nullptr : &found->value;
}

const rapidjson::Value* object_member(const rapidjson::Value& object, const char* name) {
    const rapidjson::Value* value = member(object, name);
    return value != nullptr && value->IsObject() ? value : nullptr;
}

std::optional<RecordingId> parse_recording_id(const rapidjson::Value& value) {
    if (!value.IsString()) return std::nullopt;
    const std::optional<std::string> raw = from_hex({value.GetString(), value.GetStringLength()});
    RecordingId id{};
    if (!raw || raw->size() != id.size()) return std::nullopt;
    std::memcpy(id.data(), raw->data(), id.size());
    return id;
}

std::uint32_t number32_member(const rapidjson::Value& object, const char* name) {
    const std::uint64_t number = number_member(object, name);
    return number <= 0xFFFF'FFFFU ? static_cast<std::uint32_t>(number) : 0;
}

Hello::Platform parse_platform(const rapidjson::Value& from) {
    Hello::Platform platform;
    platform.arch = text_member(from, "arch");
    platform.endian = text_member(from, "endian");
    platform.kernel = text_member(from, "kernel");
    platform.hostname = text_member(from, "hostname");
    platform.page_size = number32_member(from, "page_size");
    platform.cpus = number32_member(from, "cpus");
    platform.boot_id = text_member(from, "boot_id");
    const rapidjson::Value* paranoid = member(from, "perf_event_paranoid");
    if (paranoid != nullptr && paranoid->IsInt()) platform.perf_event_paranoid = paranoid->GetInt();
    platform.pmus = texts_member(from, "pmus");
    platform.clock = text_member(from, "clock");
    return platform;
}

void put_platform(JsonWriter& json, const Hello::Platform& platform) {
    json.object("platform")
        .member("arch", platform.arch)
        .member("endian", platform.endian)
        .member("kernel", platform.kernel)
        .member("hostname", platform.hostname)
        .member("page_size", platform.page_size)
        .member("cpus", platform.cpus)
        .member("boot_id", platform.boot_id)
        .member("perf_event_paranoid", platform.perf_event_paranoid)
        .texts("pmus", platform.pmus)
        .member("clock", platform.clock)
        .end_object();
}

std::string hex_of(const RecordingId& id) { return to_hex(std::as_bytes(std::span(id))); }

bool is_text(const rapidjson::Value& string) { return is_valid_utf8({string.GetString(), string.GetStringLength()}); }

// The parser accepts a lone surrogate such as \ude00, but such text cannot be written back. The depth is bounded.
bool all_strings_are_text(const rapidjson::Value& value) {  // NOLINT(misc-no-recursion)
    if (value.IsString()) return is_text(value);
    if (value.IsArray())
        return std::all_of(value.Begin(), value.End(), [](const auto& item) { return all_strings_are_text(item); });
    if (value.IsObject())
        return std::all_of(value.MemberBegin(), value.MemberEnd(),
                           [](const auto& entry) { return is_text(entry.name) && all_strings_are_text(entry.value); });
    return true;
}

}  // namespace

Result<rapidjson::Document> parse_object(std::string_view json) {
    if (json.size() > max_json_bytes) return fail(ErrorCode::too_large, "a JSON message is too long");
    if (nests_too_deeply(json)) return fail(ErrorCode::invalid, "a JSON message nests too deeply");
    rapidjson::Document document;
    document.Parse<rapidjson::kParseIterativeFlag | rapidjson::kParseValidateEncodingFlag>(json.data(), json.size());
    if (document.HasParseError())
        return fail(ErrorCode::invalid, "not JSON, wrong at byte " + std::to_string(document.GetErrorOffset()));
    if (!document.IsObject()) return fail(ErrorCode::invalid, "a JSON message must be an object");
    if (!all_strings_are_text(document))
        return fail(ErrorCode::invalid, "a JSON message with a string that is not UTF-8 text");
    return document;
}

std::string text_member(const rapidjson::Value& object, const char* name) {
    const rapidjson::Value* value = member(object, name);
    if (value == nullptr || !value->IsString()) return {};
    return {value->GetString(), value->GetStringLength()};
}

std::uint64_t number_member(const rapidjson::Value& object, const char* name, std::uint64_t otherwise) {
    const rapidjson::Value* value = member(object, name);
    return value != nullptr && value->IsUint64() ? value->GetUint64() : otherwise;
}

std::vector<std::string> texts_member(const rapidjson::Value& object, const char* name) {
    std::vector<std::string> texts;
    const rapidjson::Value* value = member(object, name);
    if (value == nullptr || !value->IsArray()) return texts;
    for (const rapidjson::Value& text : value->GetArray())
        if (text.IsString()) texts.emplace_back(text.GetString(), text.GetStringLength());
    return texts;
}

Result<Command> parse_command(std::string_view json) {
    rapidjson::Document document = TRY(parse_object(json));
    Command command;
    command.id = text_member(document, "id");
    command.name = text_member(document, "cmd");
    if (command.id.empty() || command.id.size() > max_name_bytes)
        return fail(ErrorCode::invalid, "a command needs an \"id\"");
    if (command.name.empty() || command.name.size() > max_name_bytes)
        return fail(ErrorCode::invalid, "a command needs a \"cmd\"");
    const rapidjson::Value* args = member(document, "args");
    if (args == nullptr || args->IsNull()) {
        command.args.SetObject();
        return command;
    }
    if (!args->IsObject()) return fail(ErrorCode::invalid, "\"args\" of a command must be an object");
    command.args.CopyFrom(*args, command.args.GetAllocator());
    return command;
}

std::string encode_command(std::string_view id, std::string_view name, const rapidjson::Value& args) {
    JsonWriter json;
    json.object().member("id", id).member("cmd", name).key("args").value(args).end_object();
    return json.take();
}

std::string encode_error_reply(std::string_view id, std::string_view text) {
    JsonWriter json;
    json.object().member("id", id).member("ok", false).member("error", text).end_object();
    return json.take();
}

Result<Ack> parse_ack(std::string_view json) {
    const rapidjson::Document document = TRY(parse_object(json));
    const rapidjson::Value* seq = member(document, "seq");
    if (seq == nullptr || !seq->IsUint64()) return fail(ErrorCode::invalid, "an acknowledgment needs a \"seq\"");
    Ack ack{std::nullopt, seq->GetUint64()};
    const rapidjson::Value* recording = member(document, "recording");
    if (recording == nullptr || recording->IsNull()) return ack;
    ack.recording = parse_recording_id(*recording);
    if (!ack.recording) return fail(ErrorCode::invalid, "a recording id is 32 hex digits");
    return ack;
}

std::string encode_ack(const Ack& ack) {
    JsonWriter json;
    json.object();
    if (ack.recording)
        json.member("recording", hex_of(*ack.recording));
    else
        json.member("recording", nullptr);
    json.member("seq", ack.seq).end_object();
    return json.take();
}

Result<Hello> parse_hello(std::string_view json) {
    const rapidjson::Document document = TRY(parse_object(json));
    const rapidjson::Value* version = member(document, "version");
    if (text_member(document, "type") != "hello" || version == nullptr || !version->IsUint())
        return fail(ErrorCode::invalid, "not a hello");
    Hello hello;
    hello.version = version->GetUint();
    hello.agent = text_member(document, "agent");
    hello.agent_version = text_member(document, "agent_version");
    hello.agent_id = text_member(document, "agent_id");
    if (const rapidjson::Value* platform = object_member(document, "platform"))
        hello.platform = parse_platform(*platform);
    if (const rapidjson::Value* capabilities = object_member(document, "capabilities")) {
        hello.capabilities.record_events = texts_member(*capabilities, "record_events");
        hello.capabilities.stat_only_events = texts_member(*capabilities, "stat_only_events");
        hello.capabilities.callgraph_method = text_member(*capabilities, "callgraph_method");
        hello.capabilities.unwind_modes = texts_member(*capabilities, "unwind_modes");
    }
    if (const std::string state = text_member(document, "state"); !state.empty()) hello.state = state;
    if (const rapidjson::Value* kept = object_member(document, "recording")) {
        const rapidjson::Value* id = member(*kept, "id");
        const std::optional<RecordingId> raw = id == nullptr ? std::nullopt : parse_recording_id(*id);
        if (!raw) return fail(ErrorCode::invalid, "the recording of a hello needs an id of 32 hex digits");
        hello.recording =
            Hello::Kept{*raw, number_member(*kept, "first_unacknowledged"), number_member(*kept, "last_seq")};
    }
    return hello;
}

std::string encode_hello(const Hello& hello) {
    JsonWriter json;
    json.object()
        .member("type", "hello")
        .member("version", hello.version)
        .member("agent", hello.agent)
        .member("agent_version", hello.agent_version)
        .member("agent_id", hello.agent_id);
    put_platform(json, hello.platform);
    json.object("capabilities")
        .texts("record_events", hello.capabilities.record_events)
        .texts("stat_only_events", hello.capabilities.stat_only_events)
        .member("callgraph_method", hello.capabilities.callgraph_method)
        .texts("unwind_modes", hello.capabilities.unwind_modes)
        .end_object()
        .member("state", hello.state);
    if (hello.recording)
        json.object("recording")
            .member("id", hex_of(hello.recording->id))
            .member("first_unacknowledged", hello.recording->first_unacknowledged)
            .member("last_seq", hello.recording->last_seq)
            .end_object();
    else
        json.member("recording", nullptr);
    json.end_object();
    return json.take();
}

}  // namespace flamewire::wire
