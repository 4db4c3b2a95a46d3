// The stream of a session: its file on disk, and the frames on their way into it and into the store. Live recording and
// replay share one code path. Thread-safe: one mutex admits one frame at a time and protects the writer, the decoder and
// the record of damage. The mutexes of SessionStore and SessionStatus are locked after it. sync() releases it before it
// waits for the disk.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "server/session/batch_decoder.h"
#include "server/session/file_damage.h"
#include "server/session/health_history.h"
#include "server/session/session_status.h"
#include "server/session/session_store.h"
#include "wire/batch.h"
#include "wire/frame.h"
#include "wire/session_file.h"
#include "wire/session_scan.h"

namespace flamewire::server {

// The result of a batch frame.
struct IngestResult {
    bool stored = false;  // false: it was here already
    bool urgent = false;  // acknowledge it without delay
    std::uint64_t seq = 0;
    std::uint64_t monotonic_ns = 0;
    std::int64_t clock_difference_ns = 0;  // arrival minus the target's wall clock: offset + latency
    std::optional<wire::AgentStats> stats;
    bool same_boot = false;  // the agent runs on this machine: no clock offset
    std::optional<wire::End> end;
};

class SessionStream {
public:
    // `max_bytes`: limit for the file while it is recorded.
    SessionStream(std::string path, std::uint64_t max_bytes, SessionStore& store, SessionStatus& status,
                  HealthHistory& health)
        : path_(std::move(path)), max_bytes_(max_bytes), store_(store), status_(status), health_(health) {}

    // Begins the file; for `owner_key`, see Session::create().
    Result<bool> create(const wire::RecordingId& recording, const std::string& owner_key);
    // Reads the file; see Session::load(). Calls `on_partial` whenever more can be shown.
    Result<bool> replay(const std::function<void()>& on_partial);
    // Opens the file for appending and cuts off a torn tail. invalid: the file has other damage.
    Result<bool> make_writable();

    // Appends one batch frame to the file, then to the store. not_found: it belongs to another recording. invalid: not
    // a batch; do not trust the connection. busy: the disk refused it and nothing was stored; retry the same frame
    // later.
    Result<IngestResult> ingest(wire::Flag flag, std::string_view payload, std::int64_t arrival_ns);
    // Stores another frame of the recording in the file as received. Health frames can then be queried. The hello of an
    // agent that reconnects marks the time in which it was disconnected.
    Result<bool> append(wire::Flag flag, std::string_view payload, std::int64_t arrival_ns);

    // Makes all appended data durable and returns the last durable seq.
    Result<std::uint64_t> sync();
    [[nodiscard]] std::uint64_t last_seq() const { return appended_seq_; }
    [[nodiscard]] std::uint64_t synced_seq() const { return synced_seq_; }

    [[nodiscard]] const std::string& path() const { return path_; }
    // Constant once part of the session can be shown, as is the owner's key.
    [[nodiscard]] const wire::RecordingId& recording() const { return recording_; }
    [[nodiscard]] const std::string& owner_key() const { return owner_key_; }

private:
    // The origin of a frame, which determines how far its arrival time can be trusted.
    enum class Origin : std::uint8_t { link, file, after_damage };

    // All of these under mutex_.
    void set_recording(const wire::RecordingId& recording);
    void check_flags(const wire::SoundRecord& record, std::uint64_t& doubtful_bytes);
    void replay_record(const wire::SoundRecord& record);
    Result<bool> finish_replay(const wire::SessionScanner& scanner);
    Result<IngestResult> ingest_locked(wire::Flag flag, std::string_view payload, std::int64_t arrival_ns,
                                       Origin origin);
    void accept(BatchDecoder::Decoded& decoded, IngestResult& result);
    void record_frame(wire::Flag flag, std::string_view payload, std::int64_t arrival_ns);
    Result<bool> open_writer();
    Result<bool> write_record(wire::Flag flag, std::string_view payload, std::int64_t arrival_ns);
    std::unexpected<Error> refuse(const Error& error);
    void publish_damage();

    const std::string path_;
    const std::uint64_t max_bytes_;
    SessionStore& store_;
    SessionStatus& status_;
    HealthHistory& health_;

    std::mutex mutex_;
    wire::RecordingId recording_{};
    std::string owner_key_;
    bool first_record_ = true;           // of the file
    bool stream_full_reported_ = false;  // until it has space again
    std::optional<wire::SessionWriter> writer_;
    BatchDecoder decoder_;
    FileDamage damage_;
    std::uint64_t last_batch_ns_ = 0;  // when the last batch was closed, on the target's clock
    std::uint64_t refused_batches_ = 0;

    std::atomic<std::uint64_t> appended_seq_{0}, synced_seq_{0};
};

}  // namespace flamewire::server
