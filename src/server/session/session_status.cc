#include "server/session/session_status.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "server/session/store_summary.h"

namespace flamewire::server {
namespace {

constexpr std::chrono::seconds thorough_every{1};

}  // namespace

SessionStatus::SessionStatus(std::string id, const SessionStore& store, const HealthHistory& health)
    : store_(store), health_(health) {
    info_.id = std::move(id);
}

SessionInfo SessionStatus::info() const {
    const std::lock_guard lock(mutex_);
    SessionInfo info = info_;
    info.state = state_locked();
    info.health_version = health_.version();
    if (info.state == SessionState::ended && info.end_reason.empty() && !info.reading)
        info.end_reason = "the agent disconnected";
    // Notices about missing data come first.
    info.notices.insert(info.notices.begin(), damage_notices_.begin(), damage_notices_.end());
    info.notices.insert(info.notices.end(), server_notices_.begin(), server_notices_.end());
    return info;
}

SessionState SessionStatus::state_locked() const {
    if (ended_) return SessionState::ended;
    if (attached_) return paused_ ? SessionState::paused : SessionState::live;
    const bool may_return = !imported_ && std::chrono::steady_clock::now() - detached_at_ < reconnect_timeout;
    return may_return ? SessionState::waiting : SessionState::ended;
}

SessionState SessionStatus::state() const {
    const std::lock_guard lock(mutex_);
    return state_locked();
}

std::uint64_t SessionStatus::start_ns() const {
    const std::lock_guard lock(mutex_);
    return info_.start_ns;
}

void SessionStatus::attach_agent(const std::string& address) {
    const std::lock_guard lock(mutex_);
    info_.agent = address;
    attached_ = true;
    paused_ = false;
}

void SessionStatus::detach_agent() {
    const std::lock_guard lock(mutex_);
    attached_ = false;
    detached_at_ = std::chrono::steady_clock::now();
}

void SessionStatus::set_imported() {
    const std::lock_guard lock(mutex_);
    imported_ = true;
}

void SessionStatus::set_notice(const std::string& code, const std::string& text, const std::string& remedy) {
    const std::lock_guard lock(mutex_);
    std::erase_if(server_notices_, [&](const wire::Notice& notice) { return notice.code == code; });
    if (!text.empty()) server_notices_.push_back({code, text, remedy});
}

void SessionStatus::set_label(Label label) {
    const std::lock_guard lock(mutex_);
    info_.label = std::move(label);
}

void SessionStatus::publish(bool thorough) {
    // Fill the copy without the mutex, so that readers of info() never wait for the store.
    const auto now = std::chrono::steady_clock::now();
    SessionInfo fresh;
    {
        const std::lock_guard lock(mutex_);
        thorough = thorough || now - thorough_at_ >= thorough_every;
        if (thorough) thorough_at_ = now;
        fresh = info_;
    }
    store_.read([&](const profile::Store& store) {
        fresh.size_bytes = size_bytes_;
        summarize_store(store, store_.first_row_ns(), thorough, fresh);
    });
    const std::lock_guard lock(mutex_);
    fresh.batches = info_.batches;
    fresh.agent = info_.agent;
    fresh.label = info_.label;
    fresh.reading = info_.reading;
    // A slower publisher must not restore an older state.
    if (fresh.data_version < info_.data_version) return;
    if (clock_known_) {
        fresh.target_started_ns = static_cast<std::int64_t>(fresh.start_ns) + realtime_minus_monotonic_ns_;
        fresh.started_ns = fresh.target_started_ns + clock_difference_ns_;
    }
    info_ = std::move(fresh);
}

void SessionStatus::set_recording(std::string hex) {
    const std::lock_guard lock(mutex_);
    info_.recording = std::move(hex);
}

void SessionStatus::set_read_progress(const ReadProgress& progress) {
    const std::lock_guard lock(mutex_);
    info_.reading = progress;
}

void SessionStatus::end_reading() {
    {
        const std::lock_guard lock(mutex_);
        info_.reading.reset();
        detached_at_ = std::chrono::steady_clock::now() -
                       std::chrono::nanoseconds(std::max<std::int64_t>(0, realtime_ns() - last_arrival_ns_));
    }
    reading_ = false;
}

void SessionStatus::add_batch(const wire::Batch& batch, std::int64_t arrival_ns, bool trusted) {
    {
        const std::lock_guard lock(mutex_);
        if (trusted) {
            const std::int64_t difference = arrival_ns - batch.realtime_ns;
            if (!clock_difference_known_ || difference < clock_difference_ns_) clock_difference_ns_ = difference;
            clock_difference_known_ = true;
            last_arrival_ns_ = arrival_ns;
        }
        if (!clock_known_)
            realtime_minus_monotonic_ns_ = batch.realtime_ns - static_cast<std::int64_t>(batch.monotonic_ns);
        clock_known_ = true;
        last_closed_ns_ = batch.monotonic_ns;
        ++info_.batches;
    }
    if (batch.end) ended_ = true;
}

void SessionStatus::set_damage(const FileDamage& damage, std::uint64_t unusable) {
    const std::lock_guard lock(mutex_);
    damage_notices_ = damage.notices(info_.start_ns, unusable);
    info_.lost_at_least = damage.hides_samples();
}

MissingTime SessionStatus::time_disconnected(std::int64_t arrival_ns) const {
    const std::lock_guard lock(mutex_);
    // The time of the reconnect on the target's own clock.
    const std::int64_t at = arrival_ns - clock_difference_ns_ - realtime_minus_monotonic_ns_;
    return {last_closed_ns_, std::max(last_closed_ns_, static_cast<std::uint64_t>(std::max<std::int64_t>(at, 0)))};
}

}  // namespace flamewire::server
