#include "server/session/job_thread.h"

#include <asio/post.hpp>
#include <asio/thread_pool.hpp>
#include <spdlog/spdlog.h>

#include <exception>
#include <utility>

namespace flamewire::server {

JobThread::JobThread(std::string what) : what_(std::move(what)), thread_(std::make_unique<asio::thread_pool>(1)) {}

JobThread::~JobThread() { stop(); }

// An exception, for example out of memory for one session, ends its job and not the server.
void JobThread::post(std::function<void()> job, std::function<void(const std::string&)> failed) {
    asio::post(*thread_, [this, job = std::move(job), failed = std::move(failed)] {
        try {
            job();
        } catch (const std::exception& error) {
            spdlog::error("{} failed: {}", what_, error.what());
            if (failed) failed(error.what());
        }
    });
}

void JobThread::stop() {
    thread_->stop();
    thread_->join();
}

}  // namespace flamewire::server
