// What a session reports about itself: its info with state, notices and label, and whether its agent is connected.
// Thread-safe. One mutex protects the info, the notices and the clocks. It is locked last: while it is held, only the
// mutex of the health history is locked. The flags (attached, ended and others) are atomic.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "server/session/file_damage.h"
#include "server/session/health_history.h"
#include "server/session/session_info.h"
#include "server/session/session_store.h"
#include "wire/batch.h"

namespace flamewire::server {

// How long a session whose agent is disconnected counts as waiting for it.
inline constexpr std::chrono::seconds reconnect_timeout{120};

class SessionStatus {
public:
    SessionStatus(std::string id, const SessionStore& store, const HealthHistory& health);

    // A snapshot.
    [[nodiscard]] SessionInfo info() const;
    [[nodiscard]] SessionState state() const;
    // Time of ms 0.
    [[nodiscard]] std::uint64_t start_ns() const;

    void attach_agent(const std::string& address);
    void detach_agent();
    // An imported session: without an agent it has ended.
    void set_imported();
    void set_paused(bool paused) { paused_ = paused; }
    [[nodiscard]] bool attached() const { return attached_; }
    [[nodiscard]] bool ended() const { return ended_; }
    // Its file has not been read to the end yet.
    [[nodiscard]] bool reading() const { return reading_; }
    // An agent is connected and sends more.
    [[nodiscard]] bool receiving() const { return attached_ && !ended_; }

    // Sets a notice of the server, which replaces an older one with the same code. An empty text removes it.
    void set_notice(const std::string& code, const std::string& text, const std::string& remedy);
    // Sets the label that info() returns. The catalog stores it on disk.
    void set_label(Label label);
    // Recomputes what info() returns. `thorough`: including what requires a pass over the rows.
    void publish(bool thorough);

    // The rest is for SessionStream. `hex`: the recording id.
    void set_recording(std::string hex);
    void set_size_bytes(std::uint64_t bytes) { size_bytes_ = bytes; }
    void begin_reading() { reading_ = true; }
    void set_read_progress(const ReadProgress& progress);
    void end_reading();
    // A batch was applied. `trusted`: its arrival time is not from behind damage.
    void add_batch(const wire::Batch& batch, std::int64_t arrival_ns, bool trusted);
    // `unusable`: samples that refer to unreadable entries.
    void set_damage(const FileDamage& damage, std::uint64_t unusable);
    // From the last batch to a reconnect that arrived at `arrival_ns`, on the target's clock.
    [[nodiscard]] MissingTime time_disconnected(std::int64_t arrival_ns) const;

private:
    [[nodiscard]] SessionState state_locked() const;

    const SessionStore& store_;
    const HealthHistory& health_;

    mutable std::mutex mutex_;  // protects everything down to last_arrival_ns_
    SessionInfo info_;
    std::vector<wire::Notice> server_notices_, damage_notices_;
    std::int64_t clock_difference_ns_ = 0;  // minimum so far
    std::int64_t realtime_minus_monotonic_ns_ = 0;
    std::uint64_t last_closed_ns_ = 0;  // of the most recent batch, on the target's clock
    bool clock_known_ = false, clock_difference_known_ = false;
    std::chrono::steady_clock::time_point thorough_at_{};
    std::chrono::steady_clock::time_point detached_at_{};
    bool imported_ = false;
    std::int64_t last_arrival_ns_ = 0;

    std::atomic<std::uint64_t> size_bytes_{0};
    std::atomic<bool> attached_{false}, paused_{false}, ended_{false}, reading_{false};
};

}  // namespace flamewire::server
