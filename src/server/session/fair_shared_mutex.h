// A shared mutex that keeps nobody out for ever: glibc's prefers readers, so that queries one after another would keep a
// writer waiting until the last of them ends.
#pragma once

#include <mutex>
#include <shared_mutex>

namespace flamewire::server {

// For std::unique_lock and std::shared_lock. Whoever holds it shared must not ask for it again: a writer may wait between.
class FairSharedMutex {
public:
    // The standard library's names. NOLINTBEGIN(readability-identifier-naming)
    void lock() {
        turn_.lock();
        mutex_.lock();
    }
    void unlock() {
        mutex_.unlock();
        turn_.unlock();
    }
    void lock_shared() {
        const std::lock_guard turn(turn_);
        mutex_.lock_shared();
    }
    void unlock_shared() { mutex_.unlock_shared(); }
    // NOLINTEND(readability-identifier-naming)

private:
    std::mutex turn_;  // of a writer from when it begins to wait, of a reader until it is in
    std::shared_mutex mutex_;
};

}  // namespace flamewire::server
