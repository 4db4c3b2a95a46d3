// One thread for slow jobs (a scan of all processes, probing). It starts with the first job and exits when there are no
// more. The queue is bounded, so that a client that sends requests too fast gets an error.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace flamewire::agent {

class Worker {
public:
    explicit Worker(std::size_t capacity) : capacity_(capacity) {}
    // Waits for the current job. Drops waiting jobs.
    ~Worker() { stop(); }
    Worker(const Worker&) = delete;
    Worker& operator=(const Worker&) = delete;

    // False if the queue is full. Call it from only one thread.
    bool submit(std::function<void()> job);
    void stop();

private:
    void run();

    const std::size_t capacity_;
    std::mutex mutex_;
    std::deque<std::function<void()>> jobs_;
    bool busy_ = false;
    std::thread thread_;
};

}  // namespace flamewire::agent
