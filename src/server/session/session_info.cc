#include "server/session/session_info.h"

#include <fmt/format.h>
#include <rapidjson/document.h>

#include <algorithm>

#include "profile/query/query.h"
#include "server/session/iso_time.h"
#include "wire/control.h"

namespace flamewire::server {
namespace {

constexpr int sidecar_schema = 1;

// Reads fields of an object, with a default if a field is missing or of another type.
class Fields {
public:
    explicit Fields(const rapidjson::Value& object) : object_(object) {}

    [[nodiscard]] const rapidjson::Value* find(const char* name) const {
        const auto member = object_.FindMember(name);
        return member == object_.MemberEnd() ? nullptr : &member->value;
    }
    [[nodiscard]] std::string text(const char* name) const {
        const rapidjson::Value* value = find(name);
        return value != nullptr && value->IsString() ? std::string(value->GetString(), value->GetStringLength())
                                                     : std::string{};
    }
    [[nodiscard]] std::uint64_t integer(const char* name) const {
        const rapidjson::Value* value = find(name);
        return value != nullptr && value->IsUint64() ? value->GetUint64() : 0;
    }
    [[nodiscard]] std::uint32_t small(const char* name) const { return static_cast<std::uint32_t>(integer(name)); }
    [[nodiscard]] double number(const char* name) const {
        const rapidjson::Value* value = find(name);
        return value != nullptr && value->IsNumber() ? value->GetDouble() : 0;
    }
    [[nodiscard]] bool boolean(const char* name) const {
        const rapidjson::Value* value = find(name);
        return value != nullptr && value->IsBool() && value->GetBool();
    }
    template <class Take>
    void each(const char* name, Take take) const {
        const rapidjson::Value* value = find(name);
        if (value == nullptr || !value->IsArray()) return;
        for (const auto& element : value->GetArray()) take(element);
    }

private:
    const rapidjson::Value& object_;
};

SessionState parse_state(std::string_view text) {
    if (text == "live") return SessionState::live;
    if (text == "paused") return SessionState::paused;
    return text == "waiting" ? SessionState::waiting : SessionState::ended;
}

void write_event(JsonWriter& json, const EventInfo& event) {
    json.object();
    json.member("name", event.name);
    json.member("unit", event.unit);
    json.member("samples", event.samples);
    json.member("weight", event.weight);
    json.member("frequency_hz", event.frequency_hz);
    json.member("period", event.period);
    json.end_object();
}

void write_retention(JsonWriter& json, const Retention& retention) {
    json.key("retention");
    json.object();
    json.member("whole_from_ms", retention.whole_from_ms);
    json.member("rows", retention.rows);
    json.member("coarse_rows", retention.coarse_rows);
    json.member("memory_bytes", retention.memory_bytes);
    json.end_object();
}

profile::Unwinding parse_unwinding(const Fields& fields) {
    profile::Unwinding unwinding;
    unwinding.mode = fields.text("unwind");
    unwinding.stack_bytes = fields.small("stack_bytes");
    unwinding.max_depth = fields.small("max_depth");
    const rapidjson::Value* totals = fields.find("unwind_totals");
    if (totals == nullptr || !totals->IsObject()) return unwinding;
    const Fields total(*totals);
    unwinding.process_count = total.integer("processes");
    unwinding.total = {total.integer("samples"),   total.integer("whole"),      total.integer("joined"),
                       total.integer("truncated"), total.integer("open_end"),   total.integer("stopped"),
                       total.integer("frames"),    total.integer("stack_bytes")};
    return unwinding;
}

void write_counts(JsonWriter& json, const profile::UnwindCounts& counts) {
    json.member("samples", counts.samples);
    json.member("whole", counts.whole);
    json.member("joined", counts.joined);
    json.member("truncated", counts.truncated);
    json.member("open_end", counts.open_end);
    json.member("stopped", counts.stopped);
    json.member("frames", counts.frames);
    json.member("stack_bytes", counts.stack_bytes);
}

SessionInfo parse_session(const Fields& fields) {
    SessionInfo info;
    info.id = fields.text("id");
    info.state = parse_state(fields.text("state"));
    info.target = fields.text("target");
    info.agent = fields.text("agent");
    info.host = fields.text("host");
    info.arch = fields.text("arch");
    info.kernel_release = fields.text("kernel_release");
    info.agent_version = fields.text("agent_version");
    info.started_ns = parse_iso_time(fields.text("started"));
    info.target_started_ns = parse_iso_time(fields.text("target_started"));
    info.duration_ms = fields.number("duration_ms");
    info.start_ns = fields.integer("start_ns");
    info.samples = fields.integer("samples");
    info.lost = fields.integer("lost");
    info.lost_at_least = fields.boolean("lost_at_least");
    info.unresolved_percent = fields.number("unresolved_percent");
    fields.each("events", [&](const rapidjson::Value& value) {
        if (!value.IsObject()) return;
        const Fields event(value);
        info.events.push_back({event.text("name"), event.text("unit"), event.integer("samples"),
                               event.integer("weight"), event.small("frequency_hz"), event.integer("period")});
    });
    fields.each("pids", [&](const rapidjson::Value& value) {
        if (value.IsUint()) info.pids.push_back(value.GetUint());
    });
    info.size_bytes = fields.integer("size_bytes");
    info.batches = fields.integer("batches");
    info.frequency_hz = fields.small("frequency_hz");
    info.unwinding = parse_unwinding(fields);
    info.end_reason = fields.text("end_reason");
    if (const rapidjson::Value* code = fields.find("exit_code"); code != nullptr && code->IsInt())
        info.exit_code = code->GetInt();
    info.data_version = fields.integer("data_version");
    fields.each("losses", [&](const rapidjson::Value& value) {
        if (!value.IsObject()) return;
        const Fields loss(value);
        info.losses.push_back({loss.text("reason"), loss.integer("count"), loss.boolean("lost"), loss.text("event"),
                               loss.number("first_ms"), loss.number("last_ms")});
    });
    fields.each("notices", [&](const rapidjson::Value& value) {
        if (!value.IsObject()) return;
        const Fields notice(value);
        info.notices.push_back({notice.text("code"), notice.text("text"), notice.text("remedy")});
    });
    return info;
}

}  // namespace

std::string_view to_string(SessionState state) {
    switch (state) {
        case SessionState::live: return "live";
        case SessionState::paused: return "paused";
        case SessionState::waiting: return "waiting";
        case SessionState::ended: return "ended";
    }
    return "ended";
}

const std::string& title_of(const SessionInfo& info) {
    if (!info.label.name.empty()) return info.label.name;
    return info.target.empty() ? info.id : info.target;
}

std::string_view loss_reason_name(wire::LossReason reason) {
    switch (reason) {
        case wire::LossReason::unknown: return "unknown";
        case wire::LossReason::ring_full: return "ring_full";
        case wire::LossReason::throttled: return "throttled";
        case wire::LossReason::spool_full: return "spool_full";
        case wire::LossReason::queue_full: return "queue_full";
        case wire::LossReason::stack_truncated: return "stack_truncated";
        case wire::LossReason::maps_lost: return "maps_lost";
        case wire::LossReason::unknown_process: return "unknown_process";
        case wire::LossReason::time_coarsened: return "time_coarsened";
        case wire::LossReason::other_server: return "other_server";
        case wire::LossReason::batches_missing: return "batches_missing";
        case wire::LossReason::thread_state_unknown: return "thread_state_unknown";
    }
    return "unknown";
}

bool is_lost(wire::LossReason reason) {
    switch (reason) {
        case wire::LossReason::throttled:  // counts pauses, not samples
        case wire::LossReason::stack_truncated:
        case wire::LossReason::maps_lost:
        case wire::LossReason::unknown_process:
        case wire::LossReason::time_coarsened:
        case wire::LossReason::thread_state_unknown: return false;
        default: return true;
    }
}

void write_loss(JsonWriter& json, const LossInfo& loss) {
    json.object();
    json.member("reason", loss.reason);
    json.member("count", loss.count);
    json.member("lost", loss.lost);
    if (!loss.event.empty()) json.member("event", loss.event);
    json.member("first_ms", loss.first_ms);
    json.member("last_ms", loss.last_ms);
    json.end_object();
}

void write_reading(JsonWriter& json, const std::optional<ReadProgress>& reading) {
    if (!reading) return;
    json.key("reading");
    json.object();
    json.member("read_bytes", reading->read_bytes);
    json.member("total_bytes", reading->total_bytes);
    json.end_object();
}

void write_session_members(JsonWriter& json, const SessionInfo& info) {
    json.member("id", info.id);
    write_label_members(json, info.label);
    json.member("state", to_string(info.state));
    json.member("target", info.target);
    json.member("agent", info.agent);
    json.member("host", info.host);
    json.member("arch", info.arch);
    json.member("kernel_release", info.kernel_release);
    json.member("agent_version", info.agent_version);
    json.member("started", iso_time(info.started_ns));
    json.member("target_started", iso_time(info.target_started_ns));
    json.member("duration_ms", info.duration_ms);
    json.member("start_ns", info.start_ns);
    json.member("samples", info.samples);
    json.member("lost", info.lost);
    if (info.lost_at_least) json.member("lost_at_least", true);
    json.member("unresolved_percent", info.unresolved_percent);
    json.member("pending_names", info.pending_names);
    json.list("events", info.events, [&](const EventInfo& event) { write_event(json, event); });
    json.numbers("pids", info.pids);
    json.member("size_bytes", info.size_bytes);
    json.member("batches", info.batches);
    json.member("frequency_hz", info.frequency_hz);
    write_unwinding(json, info.unwinding);
    json.member("end_reason", info.end_reason);
    if (info.exit_code) json.member("exit_code", *info.exit_code);
    json.member("data_version", info.data_version);
    json.list("losses", info.losses, [&](const LossInfo& loss) { write_loss(json, loss); });
    json.list("notices", info.notices, [&](const wire::Notice& notice) {
        json.object();
        json.member("code", notice.code);
        json.member("text", notice.text);
        json.member("remedy", notice.remedy);
        json.end_object();
    });
    if (info.retention) write_retention(json, *info.retention);
    write_reading(json, info.reading);
}

void write_session(JsonWriter& json, const SessionInfo& info) {
    write_session(json, info, [](JsonWriter&) {});
}

void write_unwinding(JsonWriter& json, const profile::Unwinding& unwinding) {
    json.member("unwind", unwinding.mode);
    json.member("stack_bytes", unwinding.stack_bytes);
    json.member("max_depth", unwinding.max_depth);
    json.key("unwind_totals");
    json.object();
    json.member("processes", unwinding.process_count);
    write_counts(json, unwinding.total);
    json.end_object();
}

void write_unwind_processes(JsonWriter& json, const profile::Unwinding& unwinding) {
    json.list("unwind_processes", unwinding.processes, [&](const profile::UnwindProcess& process) {
        json.object();
        json.member("pid", process.pid);
        json.member("comm", process.comm);
        json.member("mode", process.mode);
        json.member("why", process.why);
        write_counts(json, process.counts);
        json.end_object();
    });
}

std::vector<wire::Notice> current_notices(const profile::Store& store) {
    std::vector<wire::Notice> notices = store.notices();
    if (std::ranges::find(notices, "jit-names-missing", &wire::Notice::code) == notices.end()) return notices;
    const std::vector<bool> nameless = profile::nameless_jit_modules(store);
    const auto modules = store.modules();
    for (profile::ModuleId id = 1; id < modules.size(); ++id)
        if (!nameless[id])
            std::erase_if(notices,
                          [&](const wire::Notice& one) { return profile::lacks_symbols(one, modules[id].identity); });
    return notices;
}

std::string encode_sidecar(const SessionInfo& info) {
    JsonWriter json;
    json.object();
    json.member("schema", sidecar_schema);
    json.member("recording", info.recording);
    json.member("newest_ns", info.newest_ns);
    json.key("session");
    SessionInfo derived = info;
    derived.label = {};
    write_session(json, derived);
    json.end_object();
    return json.take();
}

Result<SessionInfo> parse_sidecar(std::string_view text) {
    const rapidjson::Document document = TRY(wire::parse_object(text));
    const Fields fields(document);
    const rapidjson::Value* session = fields.find("session");
    if (fields.integer("schema") != sidecar_schema || session == nullptr || !session->IsObject())
        return fail(ErrorCode::invalid, "session.json is of another version");
    SessionInfo info = parse_session(Fields(*session));
    info.recording = fields.text("recording");
    info.newest_ns = fields.integer("newest_ns");
    return info;
}

}  // namespace flamewire::server
