#include "server/http/request_queue.h"

#include <asio/post.hpp>

#include <utility>

#include "server/limits.h"

namespace flamewire::server {

void RequestQueue::add(const std::string& host, Job job, Clock::time_point now) {
    std::deque<Waiting>& of_host = waiting_[host];
    if (of_host.empty()) turns_.push_back(host);
    of_host.push_back({std::move(job), now});
    start_next();
}

void RequestQueue::stop() {
    waiting_.clear();
    turns_.clear();
}

void RequestQueue::start_next() {
    while (running_ < workers_ && !turns_.empty()) {
        const auto at = waiting_.find(turns_.front());
        turns_.pop_front();
        Waiting next = std::move(at->second.front());
        at->second.pop_front();
        if (at->second.empty())
            waiting_.erase(at);
        else
            turns_.push_back(at->first);
        const bool late = Clock::now() - next.since > limits::http_wait;
        if (late) limit_reached(Limit::http_wait);
        if (late || !next.job.wanted()) {
            next.job.refuse();
            continue;
        }
        ++running_;
        post_([this, run = std::move(next.job.run)] {
            run();
            asio::post(io_, [this] {
                --running_;
                start_next();
            });
        });
    }
}

}  // namespace flamewire::server
