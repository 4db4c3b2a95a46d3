// One thread for jobs that take long (a look at all processes, probing), started with the first of them and living only
// while there are any. A bounded queue: who asks faster than the machine answers is told so.
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
    // Waits for the job that runs; jobs that wait are dropped.
    ~Worker() { stop(); }
    Worker(const Worker&) = delete;
    Worker& operator=(const Worker&) = delete;

    // False when the queue is full. From one thread.
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
