// Short-lived threads, processes and libraries, for attribution tests. Usage: threads-workload MODE [ARG...]
//   short COUNT           COUNT threads, one after another, that burn 1 ms each in short_lived()
//   churn COUNT MS        after a line from stdin, COUNT threads, one after another, that burn MS ms on average in churned();
//                         prints the user and the total CPU time of the process in ns, and waits for another line
//   loop SECONDS          creates threads in a loop, two at a time, each burning 20 ms in looped(); prints its CPU time, ns
//   exec PROGRAM ARGS...  forks; the child burns 300 ms in before_exec(), then execs PROGRAM
//   dlopen COUNT LIBRARY  COUNT times: dlopen LIBRARY on CPU 0, call its plugin_work() on the last CPU, dlclose
//   spin SECONDS          burns in spinning()
//   nap COUNT US          COUNT threads that sleep for US microseconds in napping(), repeatedly, until a signal ends it
#include <dlfcn.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <thread>
#include <vector>

#include "cpu_budget.h"

namespace {

std::atomic<std::uint64_t> result{1};

[[gnu::noinline]] void short_lived() { result += workload::burn_cpu(1'000'000, result); }
[[gnu::noinline]] void churned(std::uint64_t length_ns) { result += workload::burn_cpu(length_ns, result); }
[[gnu::noinline]] void looped() { result += workload::burn_cpu(20'000'000, result); }
[[gnu::noinline]] void before_exec() { result += workload::burn_cpu(300'000'000, result); }
[[gnu::noinline]] void spinning() { result += workload::burn_cpu(10'000'000, result); }

[[gnu::noinline]] void napping(int us) { ::usleep(static_cast<useconds_t>(us)); }

double now_seconds() {
    timespec now{};
    ::clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

void pin_to(int cpu) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(static_cast<std::size_t>(cpu), &set);
    (void)::sched_setaffinity(0, sizeof set, &set);
}

int run_churn(int count, std::uint64_t usual_ns) {
    workload::Lengths lengths(1);
    std::getchar();
    for (; count > 0; --count) std::thread(churned, lengths.next(usual_ns)).join();
    rusage used{};
    ::getrusage(RUSAGE_SELF, &used);
    const auto ns_of = [](const timeval& time) { return time.tv_sec * 1'000'000'000LL + time.tv_usec * 1000LL; };
    std::printf("%lld %lld\n", ns_of(used.ru_utime), ns_of(used.ru_utime) + ns_of(used.ru_stime));
    std::fflush(stdout);
    std::getchar();
    return 0;
}

int run_dlopen(int count, const char* library) {
    std::atomic<void (*)()> work{nullptr};
    std::atomic<bool> done{false};
    std::uint64_t spent_ns = 0;
    std::thread caller([&] {
        pin_to(static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN)) - 1);
        while (!done)
            if (void (*function)() = work.load()) {
                const std::uint64_t begin_ns = workload::thread_cpu_ns();
                function();
                spent_ns += workload::thread_cpu_ns() - begin_ns;
                work = nullptr;
            }
    });
    pin_to(0);
    for (int i = 0; i < count; ++i) {
        void* handle = ::dlopen(library, RTLD_NOW | RTLD_LOCAL);
        if (handle == nullptr) {
            std::fprintf(stderr, "%s\n", ::dlerror());
            std::_Exit(1);
        }
        void* symbol = ::dlsym(handle, "plugin_work");
        void (*function)() = nullptr;
        std::memcpy(&function, &symbol, sizeof function);
        work = function;
        while (work.load() != nullptr) ::sched_yield();
        ::dlclose(handle);
    }
    done = true;
    caller.join();
    timespec cpu{};
    ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu);
    std::printf("%llu %lld\n", static_cast<unsigned long long>(spent_ns),
                static_cast<long long>(cpu.tv_sec) * 1'000'000'000LL + cpu.tv_nsec);
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    const std::string_view mode = argc > 1 ? argv[1] : "";
    if (mode == "short" && argc > 2) {
        for (int i = std::atoi(argv[2]); i > 0; --i) std::thread(short_lived).join();
        return 0;
    }
    if (mode == "churn" && argc > 3)
        return run_churn(std::atoi(argv[2]), static_cast<std::uint64_t>(std::atoi(argv[3])) * 1'000'000);
    if (mode == "loop" && argc > 2) {
        const double end = now_seconds() + std::atof(argv[2]);
        while (now_seconds() < end) {
            std::thread first(looped);
            std::thread second(looped);
            first.join();
            second.join();
        }
        timespec cpu{};
        ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu);
        std::printf("%lld\n", static_cast<long long>(cpu.tv_sec) * 1'000'000'000LL + cpu.tv_nsec);
        return 0;
    }
    if (mode == "exec" && argc > 2) {
        const pid_t child = ::fork();
        if (child == 0) {
            before_exec();
            ::execv(argv[2], argv + 2);
            std::perror("execv");
            std::_Exit(127);
        }
        int status = 0;
        ::waitpid(child, &status, 0);
        return WEXITSTATUS(status);
    }
    if (mode == "dlopen" && argc > 3) return run_dlopen(std::atoi(argv[2]), argv[3]);
    if (mode == "spin" && argc > 2) {
        const double end = now_seconds() + std::atof(argv[2]);
        while (now_seconds() < end) spinning();
        return 0;
    }
    if (mode == "nap" && argc > 3) {
        std::vector<std::thread> threads;
        for (int i = std::atoi(argv[2]); i > 0; --i)
            threads.emplace_back([us = std::atoi(argv[3])] {
                for (;;) napping(us);
            });
        ::pause();
    }
    std::fprintf(stderr, "usage: see the top of threads.cc\n");
    return 2;
}
