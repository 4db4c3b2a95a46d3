#include "server/session/disk_sync.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

namespace flamewire::server {
namespace {

constexpr std::chrono::milliseconds sync_interval{1000};
constexpr std::chrono::seconds sidecar_interval{10};
constexpr std::chrono::seconds idle_time{60};

}  // namespace

DiskSync::DiskSync(Catalog& catalog, Synced synced)
    : catalog_(catalog), synced_(std::move(synced)), thread_([this] { run(); }) {}

void DiskSync::mark_dirty(std::shared_ptr<Session> session, bool urgent) {
    const std::lock_guard lock(mutex_);
    Item& item = items_[session.get()];
    if (!item.session) item.session = std::move(session);
    const auto now = Clock::now();
    item.due = std::min(item.due, urgent ? now : std::max(now, item.last + sync_interval));
    wake_.notify_one();
}

void DiskSync::run() {
    std::unique_lock lock(mutex_);
    while (!stopping_) {
        auto next = Clock::now() + idle_time;
        for (const auto& [session, item] : items_) next = std::min(next, item.due);
        wake_.wait_until(lock, next, [&] {
            const auto now = Clock::now();
            return stopping_ || std::any_of(items_.begin(), items_.end(), [&](const auto& item) {
                       return item.second.due <= now || item.second.due < next;
                   });
        });
        if (stopping_) break;
        const auto now = Clock::now();
        for (auto at = items_.begin(); at != items_.end();) {
            if (at->second.due <= now) {
                Item item = at->second;
                at->second.due = Clock::time_point::max();
                lock.unlock();
                sync(item);
                lock.lock();
                at = items_.find(item.session.get());
                at->second.last = item.last;
                at->second.saved = item.saved;
                at->second.was_ended = item.was_ended;
                at->second.due = std::min(at->second.due, item.due);
                ++at;
            } else if (at->second.due == Clock::time_point::max() && now - at->second.last > idle_time) {
                at = items_.erase(at);
            } else {
                ++at;
            }
        }
    }
}

void DiskSync::sync(Item& item) {
    item.due = Clock::time_point::max();
    item.last = Clock::now();
    auto seq = item.session->sync();
    if (!seq) {
        spdlog::error("session {}: {}", item.session->id(), seq.error().message);
        item.due = item.last + sync_interval;
        return;
    }
    synced_(item.session, *seq);
    const bool ended = item.session->status().ended();
    if (item.last - item.saved >= sidecar_interval || ended != item.was_ended) {
        catalog_.save(*item.session);
        item.saved = item.last;
        item.was_ended = ended;
    }
}

void DiskSync::stop() {
    {
        const std::lock_guard lock(mutex_);
        if (stopping_) return;
        stopping_ = true;
        wake_.notify_one();
    }
    thread_.join();
    for (auto& [session, item] : items_) {
        if (auto seq = item.session->sync(); !seq) spdlog::error("session {}: {}", session->id(), seq.error().message);
        item.session->symbols().try_write_cache();  // also of sessions that still run
        catalog_.save(*item.session);
    }
}

}  // namespace flamewire::server
