// A program with known page faults, sleeps and moves between CPUs. counters-workload MODE: it prints "ready", works on SIGUSR1,
// prints "done" and waits to be killed, so two tools that measure it count the same.
//
//   steady   three threads that exist before
//   alone    starts at once, in two processes and a thread; exits with code 7
//   crowd    for benchmarks: 50 threads that work a little and sleep, until killed
//   churn    threads and processes that start and exit meanwhile, nested too
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <latch>
#include <string_view>
#include <thread>
#include <vector>

namespace {

void touch_pages(std::size_t count) {
    constexpr std::size_t page = 4096;
    void* memory = mmap(nullptr, count * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) std::abort();
    madvise(memory, count * page, MADV_NOHUGEPAGE);
    for (std::size_t i = 0; i < count; ++i) static_cast<volatile char*>(memory)[i * page] = 1;
    munmap(memory, count * page);
}

void burn(long milliseconds) {
    const auto used = [] {
        timespec now{};
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
        return now.tv_sec * 1000 + now.tv_nsec / 1'000'000;
    };
    for (const long end = used() + milliseconds; used() < end;)
        for (int i = 0; i < 20'000; ++i) asm volatile("");
}

void move_to(int cpu) {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    sched_setaffinity(0, sizeof one, &one);
}

void rounds(int count) {
    for (int round = 0; round < count; ++round) {
        touch_pages(100);
        burn(4);
        usleep(500);
        if (round % 2 == 0) move_to(round / 2 % 2);
    }
}

void child_process(int depth) {
    const pid_t pid = fork();
    if (pid == 0) {
        touch_pages(300);
        burn(5);
        if (depth > 0) {
            std::thread(rounds, 4).join();
            child_process(depth - 1);
        }
        _exit(0);
    }
    waitpid(pid, nullptr, 0);
}

void steady(std::latch& go, std::vector<std::thread>& threads) {
    for (int i = 0; i < 3; ++i)
        threads.emplace_back([&go] {
            go.wait();
            rounds(80);
        });
}

void crowd() {
    std::vector<std::thread> threads;
    for (int i = 0; i < 49; ++i)
        threads.emplace_back([i] {
            for (;;) {
                burn(1);
                usleep(20'000 + 300 * static_cast<useconds_t>(i));
            }
        });
    for (;;) pause();
}

void churn() {
    for (int i = 0; i < 12; ++i) {
        std::thread a([] {
            rounds(5);
            std::thread(rounds, 3).join();
        });
        std::thread b(rounds, 8);
        child_process(i % 3);
        a.join();
        b.join();
    }
}

}  // namespace

int main(int argc, char** argv) {
    const std::string_view mode = argc > 1 ? argv[1] : "";
    if (mode == "alone") {
        child_process(0);
        std::thread(rounds, 40).join();
        return 7;
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (mode == "crowd") crowd();
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    sigprocmask(SIG_BLOCK, &set, nullptr);
    std::latch go(1);
    std::vector<std::thread> threads;
    if (mode == "steady") steady(go, threads);
    std::puts("ready");
    std::fflush(stdout);
    int number = 0;
    sigwait(&set, &number);
    go.count_down();
    if (mode == "churn") churn();
    for (std::thread& thread : threads) thread.join();
    std::puts("done");
    std::fflush(stdout);
    pause();
}
