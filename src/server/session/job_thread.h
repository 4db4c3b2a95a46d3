// A thread that runs jobs one after another.
#pragma once

#include <functional>
#include <memory>
#include <string>

namespace asio {
class thread_pool;  // NOLINT(readability-identifier-naming)
}

namespace flamewire::server {

class JobThread {
public:
    // `what`: what its jobs do, for the log.
    explicit JobThread(std::string what);
    ~JobThread();

    // Runs the job after those before it. Its exceptions go to the log and, as a sentence, to `failed`. Any thread.
    void post(std::function<void()> job, std::function<void(const std::string&)> failed = {});
    // Drops the jobs that wait, and returns when the one that runs has ended.
    void stop();

private:
    const std::string what_;
    const std::unique_ptr<asio::thread_pool> thread_;
};

}  // namespace flamewire::server
