#include "server/session/fair_shared_mutex.h"

#include <catch2/catch.hpp>

#include <atomic>
#include <chrono>
#include <future>
#include <thread>

using flamewire::server::FairSharedMutex;

TEST_CASE("a reader that comes after a waiting writer waits for it") {
    FairSharedMutex mutex;
    std::shared_lock first(mutex);
    std::atomic<bool> written = false;
    std::thread writer([&] {
        const std::unique_lock lock(mutex);
        written = true;
    });
    // Readers are admitted until the writer waits. On a busy machine it may start late.
    std::future<bool> reader;
    bool waits = false;
    const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    while (!waits && std::chrono::steady_clock::now() < end) {
        reader = std::async(std::launch::async, [&] {
            const std::shared_lock lock(mutex);
            return written.load();
        });
        waits = reader.wait_for(std::chrono::milliseconds(100)) == std::future_status::timeout;
    }
    CHECK(waits);
    CHECK_FALSE(written);
    first.unlock();
    CHECK(reader.get());
    writer.join();
}
