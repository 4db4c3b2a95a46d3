// Requests that wait for a worker. Hosts take turns, so many requests of one host do not delay the others. Not
// thread-safe: use it on the thread of its io_context.
#pragma once

#include <asio/io_context.hpp>

#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <string>

#include "profile/store/interruption.h"

namespace flamewire::server {

class RequestQueue {
public:
    using Clock = std::chrono::steady_clock;

    struct Job {
        std::function<void()> run;     // on a worker
        std::function<bool()> wanted;  // whether the client is still connected; checked at its turn and while it runs
        std::function<void()> refuse;  // instead of run: the client disconnected, or one of the two limits was reached
        bool interruptible = false;    // run() may be interrupted
    };

    // `post` runs a function on one of `workers` threads. `most_waiting`: jobs per host. `longest_run`: time limit of a
    // job that may be interrupted.
    RequestQueue(asio::io_context& io, std::size_t workers, std::size_t most_waiting, std::chrono::seconds longest_run,
                 std::function<void(std::function<void()>)> post)
        : io_(io), workers_(workers), most_waiting_(most_waiting), longest_run_(longest_run), post_(std::move(post)) {}

    // The job waits for at most limits::http_wait.
    void add(const std::string& host, Job job, Clock::time_point now = Clock::now());
    // Interrupts (profile::Interruption) jobs that may end early if their clients have disconnected or they run for too
    // long.
    void interrupt(Clock::time_point now = Clock::now());
    // Drops the waiting jobs.
    void stop();

private:
    struct Waiting {
        Job job;
        Clock::time_point since;
    };
    struct Running {
        std::function<bool()> wanted;
        bool interruptible = false;
        Clock::time_point since = Clock::now();
        profile::Interruption interruption;
    };
    void start_next();
    void start(Job job);
    static void refuse_unwanted(std::deque<Waiting>& of_host);

    asio::io_context& io_;
    const std::size_t workers_, most_waiting_;
    const std::chrono::seconds longest_run_;
    const std::function<void(std::function<void()>)> post_;
    std::list<Running> running_;
    std::map<std::string, std::deque<Waiting>> waiting_;  // by host
    std::deque<std::string> turns_;                       // hosts of waiting_
};

}  // namespace flamewire::server
