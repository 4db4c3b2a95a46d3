#include "agent/control/worker.h"

namespace flamewire::agent {

bool Worker::submit(std::function<void()> job) {
    {
        const std::lock_guard lock(mutex_);
        if (jobs_.size() >= capacity_) return false;
        jobs_.push_back(std::move(job));
        if (busy_) return true;
        busy_ = true;
    }
    // The previous thread has left its loop.
    if (thread_.joinable()) thread_.join();
    thread_ = std::thread([this] { run(); });
    return true;
}

void Worker::run() {
    for (;;) {
        std::function<void()> job;
        {
            const std::lock_guard lock(mutex_);
            if (jobs_.empty()) {
                busy_ = false;
                return;
            }
            job = std::move(jobs_.front());
            jobs_.pop_front();
        }
        job();
    }
}

void Worker::stop() {
    {
        const std::lock_guard lock(mutex_);
        jobs_.clear();
    }
    if (thread_.joinable()) thread_.join();
}

}  // namespace flamewire::agent
