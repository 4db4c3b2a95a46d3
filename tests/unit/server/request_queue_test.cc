#include "server/http/request_queue.h"

#include <catch2/catch.hpp>

#include <string>
#include <vector>

#include "server/limits.h"

using namespace flamewire::server;

namespace {

// Workers that run a job only when work() is called.
struct Scene {
    asio::io_context io;
    std::vector<std::function<void()>> posted;
    std::string ran, refused;
    RequestQueue queue{io, 2, limits::http_waiting, limits::query_time,
                       [this](std::function<void()> job) { posted.push_back(std::move(job)); }};

    void add(const std::string& host, char name, bool wanted = true,
             RequestQueue::Clock::time_point now = RequestQueue::Clock::now()) {
        queue.add(host, {[this, name] { ran += name; }, [wanted] { return wanted; }, [this, name] { refused += name; }},
                  now);
    }
    // Runs the job that was posted first.
    void work() {
        REQUIRE_FALSE(posted.empty());
        const auto job = std::move(posted.front());
        posted.erase(posted.begin());
        job();
        io.restart();
        io.poll();
    }
};

}  // namespace

TEST_CASE("hosts take turns for a worker, and no more jobs run than there are workers") {
    Scene scene;
    for (const char name : std::string("abcdef")) scene.add("192.0.2.1", name);
    CHECK(scene.posted.size() == 2);
    scene.add("192.0.2.2", 'x');
    scene.add("192.0.2.2", 'y');
    scene.add("192.0.2.3", 'z');
    while (!scene.posted.empty()) {
        CHECK(scene.posted.size() <= 2);
        scene.work();
    }
    CHECK(scene.ran == "abcxzdyef");
    scene.add("192.0.2.2", 'q');
    scene.work();
    CHECK(scene.ran.back() == 'q');
}

TEST_CASE("a request is not run if its client has disconnected") {
    Scene scene;
    scene.add("192.0.2.1", 'a');
    scene.add("192.0.2.1", 'b');
    scene.add("192.0.2.1", 'c', false);
    scene.add("192.0.2.1", 'd');
    while (!scene.posted.empty()) scene.work();
    CHECK(scene.ran == "abd");
    CHECK(scene.refused == "c");
}

TEST_CASE("a running request is interrupted when its client disconnects, if it may end early") {
    Scene scene;
    bool is_there = true;
    std::string ended;
    const auto add = [&](char name, bool interruptible) {
        const auto run = [&, name] {
            is_there = false;
            scene.queue.interrupt();
            try {
                flamewire::profile::Interruption::check();
                ended += name;
            } catch (const flamewire::profile::Interrupted&) {
                ended += '-';
            }
        };
        scene.queue.add("192.0.2.1", {run, [&] { return is_there; }, [] {}, interruptible});
    };
    add('a', true);
    add('b', false);
    scene.work();
    scene.work();
    CHECK(ended == "-b");
    is_there = true;
    scene.queue.interrupt();
    add('c', true);
    flamewire::profile::Interruption::check();  // belongs to no job
    scene.work();
    CHECK(ended == "-b-");
}

TEST_CASE("a request that runs for too long is interrupted, if it may end early") {
    Scene scene;
    const std::uint64_t before = times_reached(Limit::query_time);
    std::string ended;
    for (const bool interruptible : {true, false}) {
        const auto run = [&] {
            const auto now = RequestQueue::Clock::now();
            scene.queue.interrupt(now + limits::query_time - std::chrono::seconds(1));
            flamewire::profile::Interruption::check();
            scene.queue.interrupt(now + limits::query_time + std::chrono::seconds(1));
            try {
                flamewire::profile::Interruption::check();
                ended += "whole ";
            } catch (const flamewire::profile::Interrupted&) {
                ended += "early ";
            }
        };
        scene.queue.add("192.0.2.1", {run, [] { return true; }, [] {}, interruptible});
        scene.work();
    }
    CHECK(ended == "early whole ");
    CHECK(times_reached(Limit::query_time) == before + 1);
}

TEST_CASE("a request that has waited for too long is refused") {
    Scene scene;
    const std::uint64_t before = times_reached(Limit::http_wait);
    const auto now = RequestQueue::Clock::now();
    scene.add("192.0.2.1", 'a', true, now);
    scene.add("192.0.2.1", 'b', true, now);
    scene.add("192.0.2.1", 'c', true, now - limits::http_wait - std::chrono::seconds(1));
    scene.add("192.0.2.1", 'd', true, now);
    while (!scene.posted.empty()) scene.work();
    CHECK(scene.ran == "abd");
    CHECK(scene.refused == "c");
    CHECK(times_reached(Limit::http_wait) == before + 1);
}

TEST_CASE("a host has a limited number of waiting requests, and more are refused") {
    Scene scene;
    const std::uint64_t before = times_reached(Limit::http_waiting);
    scene.add("192.0.2.1", 'a');
    scene.add("192.0.2.1", 'a');
    for (std::size_t i = 0; i < limits::http_waiting; ++i) scene.add("192.0.2.1", 'b');
    CHECK(scene.refused.empty());
    scene.add("192.0.2.1", 'x');
    CHECK(scene.refused == "x");
    CHECK(times_reached(Limit::http_waiting) == before + 1);
    scene.add("192.0.2.2", 'c');
    while (!scene.posted.empty()) scene.work();
    CHECK(scene.ran == "aabc" + std::string(limits::http_waiting - 1, 'b'));
    CHECK(scene.refused == "x");
}

TEST_CASE("requests of disconnected clients make room for others of the same host") {
    Scene scene;
    scene.add("192.0.2.1", 'a');
    scene.add("192.0.2.1", 'b');
    for (std::size_t i = 0; i < limits::http_waiting; ++i) scene.add("192.0.2.1", 'x', false);
    scene.add("192.0.2.1", 'c');
    scene.add("192.0.2.1", 'd');
    scene.add("192.0.2.2", 'e');
    CHECK(scene.refused == std::string(limits::http_waiting, 'x'));
    while (!scene.posted.empty()) scene.work();
    CHECK(scene.ran == "abced");
    CHECK(scene.posted.empty());
}

TEST_CASE("requests that wait when the server ends are dropped") {
    Scene scene;
    for (const char name : std::string("abcd")) scene.add("192.0.2.1", name);
    scene.queue.stop();
    while (!scene.posted.empty()) scene.work();
    CHECK(scene.ran == "ab");
}
