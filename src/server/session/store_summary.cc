#include "server/session/store_summary.h"

#include <algorithm>
#include <string>
#include <utility>

#include "profile/query/query.h"
#include "profile/store/tables.h"

namespace flamewire::server {
namespace {

// Time since the start of the session.
double ms_of(const SessionInfo& info, std::uint64_t ns) {
    return ns <= info.start_ns ? 0.0 : static_cast<double>(ns - info.start_ns) / 1e6;
}

void set_recording(const profile::Store& store, SessionInfo& info) {
    const auto& recording = store.recording();
    if (!recording) return;
    info.target = recording->target;
    info.host = recording->host;
    info.arch = recording->arch;
    info.kernel_release = recording->kernel_release;
    info.agent_version = recording->agent_version;
    info.pids = recording->pids;
    info.frequency_hz = recording->frequency_hz;
    info.start_ns = recording->start_ns;
}

void set_events(const profile::Store& store, SessionInfo& info) {
    info.events.clear();
    const auto events = store.events();
    for (profile::EventId id = 1; id < events.size(); ++id) {
        const profile::Weight total = store.total(id);
        info.events.push_back({events[id].name, events[id].unit, total.samples, total.weight, events[id].frequency_hz,
                               events[id].period});
    }
}

void set_losses(const profile::Store& store, SessionInfo& info) {
    info.losses.clear();
    info.lost = 0;
    const auto events = store.events();
    for (const profile::LossTotal& loss : store.losses()) {
        const bool dropped = loss.by_store && loss.reason == wire::LossReason::unknown;
        LossInfo out{dropped ? "memory_limit" : std::string(loss_reason_name(loss.reason)),
                     loss.count,
                     is_lost(loss.reason),
                     loss.event < events.size() ? events[loss.event].name : "",
                     ms_of(info, loss.first_ns),
                     ms_of(info, loss.last_ns)};
        if (out.lost) info.lost += out.count;
        info.losses.push_back(std::move(out));
    }
}

void set_retention(const profile::Store& store, SessionInfo& info) {
    Retention retention;
    retention.rows = store.row_count();
    retention.memory_bytes = store.memory_bytes();
    for (const profile::Coverage& stretch : store.coverage())
        if (!stretch.whole) retention.whole_from_ms = ms_of(info, stretch.end_ns);
    for (const profile::RowChunk& chunk : store.tables().rows.chunks())
        if (chunk.level != 0) retention.coarse_rows += chunk.size();
    info.retention = retention;
}

}  // namespace

void summarize_store(const profile::Store& store, std::uint64_t first_row_ns, bool thorough, SessionInfo& info) {
    info.data_version = store.version();
    set_recording(store, info);
    if (store.row_count() != 0) {
        // The bucket of the first sample can start before the recording did.
        info.start_ns = info.start_ns == 0 ? first_row_ns : std::min(info.start_ns, first_row_ns);
        info.newest_ns = store.end_ns();
    }
    info.duration_ms = ms_of(info, store.known_until_ns());
    info.samples = store.total(0).samples;
    info.pending_names = store.pending_locations();
    set_events(store, info);
    set_losses(store, info);
    info.unwinding = profile::unwinding_of(store);
    info.notices = current_notices(store);
    if (const auto& end = store.end()) {
        info.end_reason = end->reason;
        info.exit_code = end->exit_code;
    }
    set_retention(store, info);
    if (thorough && info.samples != 0) {
        const profile::Weight unresolved = profile::unresolved(store, {});
        info.unresolved_percent = 100.0 * static_cast<double>(unresolved.samples) / static_cast<double>(info.samples);
    }
}

}  // namespace flamewire::server
