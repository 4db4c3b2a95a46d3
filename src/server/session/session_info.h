// Facts about a session without its rows: the answer of /api/sessions, the sidecar file session.json, and the events of
// the event stream. A value: a live session publishes a new one after every batch, and readers keep theirs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_writer.h"
#include "base/result.h"
#include "profile/query/unwinding.h"
#include "profile/store/store.h"
#include "server/session/label.h"

namespace flamewire::server {

enum class SessionState { live, paused, waiting, ended };
std::string_view to_string(SessionState state);

struct EventInfo {
    std::string name, unit;
    std::uint64_t samples = 0, weight = 0;
    std::uint32_t frequency_hz = 0;
    std::uint64_t period = 0;
    bool operator==(const EventInfo&) const = default;
};

struct LossInfo {
    std::string reason;
    std::uint64_t count = 0;
    bool lost = false;  // samples that no view shows
    std::string event;
    double first_ms = 0, last_ms = 0;
    bool operator==(const LossInfo&) const = default;
};

struct Retention {
    double whole_from_ms = 0;
    std::uint64_t rows = 0, coarse_rows = 0, memory_bytes = 0;
};

// How much of a session's file has been read.
struct ReadProgress {
    std::uint64_t read_bytes = 0, total_bytes = 0;
};

struct SessionInfo {
    std::string id;
    std::string recording;  // hex; only in the sidecar
    Label label;            // not in the sidecar
    SessionState state = SessionState::ended;
    std::string target, agent, host, arch, kernel_release, agent_version;
    std::int64_t started_ns = 0;         // server's wall clock
    std::int64_t target_started_ns = 0;  // the target's
    double duration_ms = 0;
    std::uint64_t start_ns = 0;        // CLOCK_MONOTONIC of the target at ms 0
    std::uint64_t newest_ns = 0;       // end of the newest bucket
    std::uint64_t health_version = 0;  // increases with every health frame; only in memory
    std::uint64_t samples = 0, lost = 0;
    bool lost_at_least = false;  // more are lost, but the number is unknown: the file is damaged
    double unresolved_percent = 0;
    std::uint64_t pending_names = 0;  // addresses whose symbols are being resolved; only in memory
    std::vector<EventInfo> events;
    std::vector<std::uint32_t> pids;
    std::uint64_t size_bytes = 0, batches = 0;
    std::uint32_t frequency_hz = 0;
    profile::Unwinding unwinding;
    std::string end_reason;
    std::optional<std::int32_t> exit_code;
    std::uint64_t data_version = 0;
    std::vector<LossInfo> losses;
    std::vector<wire::Notice> notices;
    std::optional<Retention> retention;   // of sessions in memory
    std::optional<ReadProgress> reading;  // while its file is being read: all else refers to what was read so far
};

// Display title: the assigned name, otherwise the target, otherwise the id.
const std::string& title_of(const SessionInfo& info);

std::string_view loss_reason_name(wire::LossReason reason);
// True when `reason` counts samples that no view shows.
bool is_lost(wire::LossReason reason);

// Notices of the recording, without those that no longer apply, for example because code made at run time got symbols
// later.
std::vector<wire::Notice> current_notices(const profile::Store& store);

// The Session object of docs/openapi.yaml. `more` adds members (for example, modules) before the object ends.
template <class More>
void write_session(JsonWriter& json, const SessionInfo& info, More more);
void write_session(JsonWriter& json, const SessionInfo& info);
void write_loss(JsonWriter& json, const LossInfo& loss);
void write_reading(JsonWriter& json, const std::optional<ReadProgress>& reading);
// Members of an open object: unwind, stack_bytes, max_depth and unwind_totals; the second function writes
// unwind_processes.
void write_unwinding(JsonWriter& json, const profile::Unwinding& unwinding);
void write_unwind_processes(JsonWriter& json, const profile::Unwinding& unwinding);
void write_session_members(JsonWriter& json, const SessionInfo& info);

template <class More>
void write_session(JsonWriter& json, const SessionInfo& info, More more) {
    json.object();
    write_session_members(json, info);
    more(json);
    json.end_object();
}

// The sidecar: {"schema":1,"recording":hex,"newest_ns":n,"session":{…}}.
std::string encode_sidecar(const SessionInfo& info);
// invalid: not such a file; the caller rebuilds it from the stream.
Result<SessionInfo> parse_sidecar(std::string_view json);

}  // namespace flamewire::server
