#include "server/link/ingest.h"

#include <fmt/format.h>

#include "base/hex.h"
#include "server/limits.h"
#include "server/session/disk_remedy.h"

namespace flamewire::server {
namespace {

bool is_batch(wire::Flag flag) { return flag == wire::Flag::batch || flag == wire::Flag::batch_zstd; }

// A recording that began with a key continues only with that key. One that began without a key has no known owner.
Result<bool> check_owner(const Session& session, const Sender& sender) {
    if (session.owner_key().empty() || session.owner_key() == sender.key) return true;
    limit_reached(Limit::foreign_recordings);
    return fail(ErrorCode::permission,
                fmt::format("recording {} was begun with another pairing key, and only that one may continue it: start "
                            "the agent again, which begins a new recording",
                            to_hex(std::as_bytes(std::span(session.recording()))).substr(0, 8)));
}

}  // namespace

// Under begin_mutex_.
bool Ingest::may_begin(const Sender& sender) {
    const auto now = std::chrono::steady_clock::now();
    const auto old = [&](const auto& entry) {
        return entry.second.empty() || now - entry.second.back() > limits::new_recordings_window;
    };
    std::erase_if(begun_, old);
    auto& times = begun_[sender.key.empty() ? sender.host : sender.key];
    while (!times.empty() && now - times.front() > limits::new_recordings_window) times.pop_front();
    if (times.size() >= limits::new_recordings) return false;
    times.push_back(now);
    return true;
}

Result<std::shared_ptr<Session>> Ingest::session_of(const wire::Frame& frame, const Sender& sender) {
    const std::string bytes = TRY(wire::batch_bytes(frame));
    const wire::BatchHeader header = TRY(wire::peek_header(as_bytes_view(bytes)));
    const std::lock_guard lock(begin_mutex_);
    if (auto known = TRY(catalog_.find_recording(header.recording_id))) {
        TRY(check_owner(*known, sender));
        return known;
    }
    // The batch is decoded again when it is stored. Here only its target is needed, for the directory's name.
    wire::EventPeriods periods;
    const wire::Batch batch = TRY(wire::decode(as_bytes_view(bytes), periods));
    if (!may_begin(sender)) {
        limit_reached(Limit::new_recordings);
        return fail(ErrorCode::busy, fmt::format("{} recordings were begun from there within {} s: wait a minute",
                                                 limits::new_recordings, limits::new_recordings_window.count()));
    }
    auto created = catalog_.create(header.recording_id, batch.recording ? batch.recording->target : "", sender.key);
    if (!created)
        return std::unexpected(Error{ErrorCode::busy, created.error().errno_value, std::move(created.error().message)});
    return created;
}

Ingested Ingest::store(std::deque<ArrivedFrame> frames, std::shared_ptr<Session> session, const Sender& sender) {
    Ingested result;
    result.session = std::move(session);
    bool urgent = false, took = false;
    for (; !frames.empty(); frames.pop_front()) {
        const ArrivedFrame& it = frames.front();
        if (!is_batch(it.frame.flag)) {
            if (result.session) (void)result.session->append(it.frame.flag, it.frame.payload, it.arrival_ns);
            continue;
        }
        Result<IngestResult> taken = fail(ErrorCode::not_found, "no session yet");
        if (result.session) taken = result.session->ingest(it.frame.flag, it.frame.payload, it.arrival_ns);
        if (!taken && taken.error().code == ErrorCode::not_found) {
            auto found = session_of(it.frame, sender);
            if (found) {
                if (result.session && took) disk_.mark_dirty(result.session, true);
                result.session = *found;
                result.session->status().attach_agent(sender.address);
                taken = result.session->ingest(it.frame.flag, it.frame.payload, it.arrival_ns);
            } else {
                taken = std::unexpected(found.error());
            }
        }
        if (!taken) {
            const ErrorCode code = taken.error().code;
            if (code == ErrorCode::invalid || code == ErrorCode::too_large || code == ErrorCode::not_found ||
                is_foreign(taken.error())) {
                result.protocol_error = taken.error().message;
                result.foreign = is_foreign(taken.error());
            } else {
                // The disk failed; the agent is not at fault.
                result.disk_error = with_disk_remedy(taken.error()).message;
                result.unstored = std::move(frames);
            }
            break;
        }
        took = true;
        urgent = urgent || taken->urgent;
        if (taken->stored) result.last = std::move(*taken);
    }
    if (result.session && took) {
        disk_.mark_dirty(result.session, urgent);
        symbols_.schedule(result.session);
    }
    return result;
}

Result<std::shared_ptr<Session>> Ingest::resume(const wire::RecordingId& recording, const ArrivedFrame& hello,
                                                const Sender& sender) {
    const std::lock_guard lock(begin_mutex_);
    auto session = TRY(catalog_.find_recording(recording));
    if (session) {
        TRY(check_owner(*session, sender));
        // On a full disk this fails and sets a notice. The recording can still continue.
        if (!session->status().ended()) (void)session->append(hello.frame.flag, hello.frame.payload, hello.arrival_ns);
        (void)TRY(session->sync());
        symbols_.schedule(session);
    }
    return session;
}

}  // namespace flamewire::server
