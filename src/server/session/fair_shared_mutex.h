// A shared mutex without writer starvation. glibc's shared mutex prefers readers, so overlapping queries could block a
// writer until the last of them ends.
#pragma once

#include <mutex>
#include <shared_mutex>

namespace flamewire::server {

// Use it with std::unique_lock and std::shared_lock. A thread that holds it shared must not lock it again: a writer may
// be waiting.
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
    std::mutex turn_;  // held by a writer while it waits and writes, by a reader until it has entered
    std::shared_mutex mutex_;
};

}  // namespace flamewire::server
