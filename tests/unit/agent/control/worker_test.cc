// Jobs run in order on another thread, a full queue refuses jobs, and stop() drops the waiting ones.
#include "agent/control/worker.h"

#include <catch2/catch.hpp>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

using flamewire::agent::Worker;

TEST_CASE("jobs run in order, on another thread, also after an idle time") {
    std::vector<int> order;
    std::thread::id where;
    for (int round = 0; round < 3; ++round) {
        Worker worker(4);
        for (int i = 0; i < 4; ++i)
            while (!worker.submit([&, i] {
                order.push_back(i);
                where = std::this_thread::get_id();
            })) {
            }
        std::atomic<bool> done{false};
        while (!worker.submit([&] { done = true; })) {
        }
        while (!done) std::this_thread::yield();
        worker.stop();
        CHECK(worker.submit([&] { order.push_back(4); }));
        while (!worker.submit([&] { done = false; })) {
        }
        while (done) std::this_thread::yield();
    }
    CHECK(order == std::vector<int>{0, 1, 2, 3, 4, 0, 1, 2, 3, 4, 0, 1, 2, 3, 4});
    CHECK(where != std::this_thread::get_id());
}

TEST_CASE("a full queue refuses jobs, and jobs that wait at the end are dropped") {
    std::mutex mutex;
    std::condition_variable changed;
    bool running = false, release = false;
    std::atomic<int> ran{0};
    Worker worker(2);
    REQUIRE(worker.submit([&] {
        std::unique_lock lock(mutex);
        running = true;
        changed.notify_all();
        changed.wait(lock, [&] { return release; });
        ++ran;
    }));
    {
        std::unique_lock lock(mutex);
        changed.wait(lock, [&] { return running; });
    }
    CHECK(worker.submit([&] { ++ran; }));
    CHECK(worker.submit([&] { ++ran; }));
    CHECK_FALSE(worker.submit([&] { ++ran; }));
    std::thread stopper([&] { worker.stop(); });
    // stop() empties the queue at once and then waits for the running job.
    for (bool emptied = false; !emptied;) {
        emptied = worker.submit([] {});
        std::this_thread::yield();
    }
    {
        const std::lock_guard lock(mutex);
        release = true;
        changed.notify_all();
    }
    stopper.join();
    CHECK(ran == 1);
}
