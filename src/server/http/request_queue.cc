#include "server/http/request_queue.h"

#include <asio/post.hpp>

#include <utility>

#include "server/limits.h"

namespace flamewire::server {

void RequestQueue::add(const std::string& host, Job job, Clock::time_point now) {
    const auto [at, is_new] = waiting_.try_emplace(host);
    std::deque<Waiting>& of_host = at->second;
    if (is_new) turns_.push_back(host);
    if (of_host.size() >= most_waiting_) {
        refuse_unwanted(of_host);
        if (of_host.size() >= most_waiting_) {
            limit_reached(Limit::http_waiting);
            return job.refuse();
        }
    }
    of_host.push_back({std::move(job), now});
    start_next();
}

void RequestQueue::interrupt(Clock::time_point now) {
    for (Running& one : running_) {
        if (!one.interruptible || one.interruption.asked()) continue;
        const bool late = now - one.since > longest_run_;
        if (late) limit_reached(Limit::query_time);
        if (late || !one.wanted()) one.interruption.ask();
    }
}

void RequestQueue::stop() {
    waiting_.clear();
    turns_.clear();
}

void RequestQueue::refuse_unwanted(std::deque<Waiting>& of_host) {
    std::deque<Waiting> wanted, gone;
    for (Waiting& one : of_host) (one.job.wanted() ? wanted : gone).push_back(std::move(one));
    of_host = std::move(wanted);
    for (const Waiting& one : gone) one.job.refuse();
}

void RequestQueue::start_next() {
    while (running_.size() < workers_ && !turns_.empty()) {
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
        start(std::move(next.job));
    }
}

void RequestQueue::start(Job job) {
    const auto at = running_.emplace(running_.end());
    at->wanted = std::move(job.wanted);
    at->interruptible = job.interruptible;
    post_([this, at, run = std::move(job.run)] {
        {
            const profile::Interruption::Scope scope(at->interruption);
            run();
        }
        asio::post(io_, [this, at] {
            running_.erase(at);
            start_next();
        });
    });
}

}  // namespace flamewire::server
