// The demo: a small "city simulation" that keeps two CPUs busy. It has several named threads, deep and varied stacks,
// inlined functions, templates, libstdc++ and libc. The shares of each worker's CPU time are known:
//   stage_traffic 45 %, stage_weather 30 %, stage_render 25 %,
// and within stage_traffic route_cars 2/3, settle_crossings 1/3. The logger thread sleeps most of the time.
// Usage: demo-workload [SECONDS] (0: until a signal ends it)
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "cpu_budget.h"

namespace city {

std::atomic<bool> running{true};

constexpr std::uint64_t usual_round_ns = 20'000'000;

// Calls `step` until this thread's CPU clock reaches the deadline, so the share of a stage does not depend on the cost
// of its steps.
template <class Step>
[[gnu::always_inline]] inline void until(std::uint64_t deadline_ns, Step step) {
    do step();
    while (workload::thread_cpu_ns() < deadline_ns);
}

struct Car {
    double x = 0, y = 0, speed = 1;
    std::uint32_t road = 0;
};

struct Crossing {
    std::map<std::uint32_t, std::uint32_t> waiting;
};

class World {
public:
    explicit World(std::uint64_t seed) : lengths_(seed), seed_(seed), cars_(600), crossings_(64), heights_(64 * 64) {
        for (Car& car : cars_) car = {unit(), unit(), 0.5 + unit(), static_cast<std::uint32_t>(next() % 64)};
    }

    std::uint64_t next() { return seed_ = workload::mix(seed_); }
    double unit() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }

    workload::Lengths lengths_;
    std::uint64_t round_ns_ = usual_round_ns;
    std::uint64_t seed_;
    std::vector<Car> cars_;
    std::vector<Crossing> crossings_;
    std::vector<double> heights_;
    std::string frame_;
};

inline double distance(const Car& a, const Car& b) {
    const double dx = a.x - b.x;
    const double dy = a.y - b.y;
    return std::sqrt(dx * dx + dy * dy);
}

// A recursive quadtree walk, which makes the deep part of the stacks.
[[gnu::noinline]] double visit_quadrant(World& world, double x, double y, double size, int depth) {
    double sum = 0;
    for (std::size_t i = static_cast<std::size_t>(depth); i < world.cars_.size(); i += 97)
        sum += distance(world.cars_[i], {x, y, 0, 0});
    if (depth == 0) return sum;
    const double half = size / 2;
    const std::uint64_t which = world.next();
    sum += visit_quadrant(world, x + ((which & 1) != 0 ? half : 0), y + ((which & 2) != 0 ? half : 0), half, depth - 1);
    return sum * 0.5;
}

[[gnu::noinline]] void move_car(World& world, Car& car) {
    car.x = std::fmod(car.x + car.speed * 0.01 + 1, 1.0);
    car.y = std::fmod(car.y + world.unit() * 0.01, 1.0);
    car.speed += visit_quadrant(world, car.x, car.y, 1, 2 + static_cast<int>(world.next() % 12)) * 1e-9;
}

[[gnu::noinline]] void route_cars(World& world, std::uint64_t deadline_ns) {
    std::size_t i = 0;
    until(deadline_ns, [&] {
        for (int turn = 0; turn < 8; ++turn) move_car(world, world.cars_[i++ % world.cars_.size()]);
    });
}

[[gnu::noinline]] void settle_crossing(Crossing& crossing, std::uint64_t arrivals) {
    for (std::uint32_t k = 0; k < 24; ++k) ++crossing.waiting[static_cast<std::uint32_t>((arrivals >> k) % 40)];
    if (crossing.waiting.size() > 30) crossing.waiting.clear();
}

[[gnu::noinline]] void settle_crossings(World& world, std::uint64_t deadline_ns) {
    until(deadline_ns, [&] { settle_crossing(world.crossings_[world.next() % 64], world.next()); });
}

[[gnu::noinline]] void stage_traffic(World& world, std::uint64_t start_ns) {
    route_cars(world, start_ns + world.round_ns_ * 30 / 100);
    settle_crossings(world, start_ns + world.round_ns_ * 45 / 100);
}

template <int Size>
[[gnu::noinline]] void diffuse(std::vector<double>& heights) {
    for (int y = 1; y < Size - 1; ++y)
        for (int x = 1; x < Size - 1; ++x) {
            const auto at = [&](int dx, int dy) -> double& {
                return heights[static_cast<std::size_t>((y + dy) * Size + x + dx)];
            };
            at(0, 0) += 0.1 * (at(-1, 0) + at(1, 0) + at(0, -1) + at(0, 1) - 4 * at(0, 0)) + std::sin(at(0, 0)) * 1e-3;
        }
}

[[gnu::noinline]] void stage_weather(World& world, std::uint64_t start_ns) {
    until(start_ns + world.round_ns_ * 75 / 100, [&] {
        world.heights_[world.next() % world.heights_.size()] += 1;
        diffuse<64>(world.heights_);
    });
}

[[gnu::noinline]] bool nearer(const Car& a, const Car& b) { return a.x * a.x + a.y < b.x * b.x + b.y; }

[[gnu::noinline]] void draw_labels(World& world) {
    world.frame_.clear();
    for (std::size_t i = 0; i < 40; ++i) {
        char label[48];
        std::snprintf(label, sizeof label, "car %zu at %.3f %.3f;", i, world.cars_[i].x, world.cars_[i].y);
        world.frame_ += label;
    }
}

[[gnu::noinline]] void stage_render(World& world, std::uint64_t start_ns) {
    until(start_ns + world.round_ns_, [&] {
        std::vector<Car> visible = world.cars_;
        std::sort(visible.begin(), visible.end(), nearer);
        draw_labels(world);
    });
}

[[gnu::noinline]] void simulate_round(World& world) {
    world.round_ns_ = world.lengths_.next(usual_round_ns);
    const std::uint64_t start = workload::thread_cpu_ns();
    stage_traffic(world, start);
    stage_weather(world, start);
    stage_render(world, start);
}

void run_worker(int number) {
    const std::string name = "city-" + std::to_string(number);
    ::pthread_setname_np(::pthread_self(), name.c_str());
    World world(88172645463325252ULL + static_cast<std::uint64_t>(number));
    while (running) simulate_round(world);
}

void run_logger() {
    ::pthread_setname_np(::pthread_self(), "logger");
    std::uint64_t x = 1;
    while (running) {
        x = workload::burn_cpu(500'000, x);
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
}

}  // namespace city

int main(int argc, char** argv) {
    const double seconds = argc > 1 ? std::atof(argv[1]) : 0;
    std::signal(SIGTERM, [](int) { city::running = false; });
    std::signal(SIGINT, [](int) { city::running = false; });
    std::vector<std::thread> threads;
    for (int i = 1; i <= 2; ++i) threads.emplace_back(city::run_worker, i);
    threads.emplace_back(city::run_logger);
    const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds > 0 ? seconds : 1e9);
    while (city::running && std::chrono::steady_clock::now() < end)
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
    city::running = false;
    for (std::thread& thread : threads) thread.join();
    return 0;
}
