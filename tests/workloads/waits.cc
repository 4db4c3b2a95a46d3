// Threads that wait in known ways and measure the waits themselves: waits-workload SECONDS [DISK_FILE]
// At the end it prints one line of JSON per thread: name, tid, the sum of its waits by CLOCK_MONOTONIC, its lifetime,
// the delay between its creation and its first reading of the counts, and the kernel's counts: time in run queues and
// turns on CPUs (schedstat in proc(5)), and voluntary and involuntary context switches (getrusage).
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace {

std::uint64_t now() {
    timespec time{};
    clock_gettime(CLOCK_MONOTONIC, &time);
    return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(time.tv_nsec);
}

std::uint64_t end_ns;
std::atomic<std::uint64_t> sink;

struct SchedCounts {
    unsigned long long queued_ns = 0, turns = 0;
    long slept = 0, preempted = 0;
    static SchedCounts now() {
        SchedCounts counts;
        char path[64];
        std::snprintf(path, sizeof path, "/proc/self/task/%ld/schedstat", syscall(SYS_gettid));
        if (std::FILE* file = std::fopen(path, "r")) {
            if (std::fscanf(file, "%*u %llu %llu", &counts.queued_ns, &counts.turns) != 2) std::abort();
            std::fclose(file);
        }
        rusage usage{};
        getrusage(RUSAGE_THREAD, &usage);
        counts.slept = usage.ru_nvcsw;
        counts.preempted = usage.ru_nivcsw;
        return counts;
    }
};

// Printed when all threads have ended: a write wakes its reader, which may preempt a thread that is about to end.
std::mutex lines_mutex;
std::vector<std::string> lines;

// The time just before the creation of this thread.
thread_local std::uint64_t created_ns;

struct Life {
    const char* name;
    // Must be first: reading the counts may wait, and that must be outside both the counts and the lifetime.
    SchedCounts begin = SchedCounts::now();
    std::uint64_t born = now(), late = born - created_ns, waited = 0, waits = 0;
    explicit Life(const char* name_in) : name(name_in) { pthread_setname_np(pthread_self(), name); }
    ~Life() {
        const std::uint64_t died = now();
        const SchedCounts end = SchedCounts::now();
        char line[512];
        std::snprintf(
            line, sizeof line,
            "{\"thread\": \"%s\", \"tid\": %ld, \"waits\": %llu, \"waited_ns\": %llu, \"wall_ns\": %llu, \"late_ns\": "
            "%llu, "
            "\"born_ns\": %llu, \"queued_ns\": %llu, \"turns\": %llu, \"slept\": %ld, \"preempted\": %ld}\n",
            name, syscall(SYS_gettid), static_cast<unsigned long long>(waits), static_cast<unsigned long long>(waited),
            static_cast<unsigned long long>(died - born), static_cast<unsigned long long>(late),
            static_cast<unsigned long long>(born), end.queued_ns - begin.queued_ns, end.turns - begin.turns,
            end.slept - begin.slept, end.preempted - begin.preempted);
        const std::lock_guard lock(lines_mutex);
        lines.emplace_back(line);
    }
    template <class Wait>
    void wait(const Wait& one) {
        const std::uint64_t before = now();
        one();
        waited += now() - before;
        ++waits;
    }
};

void burn(std::uint64_t until_ns) {
    std::uint64_t value = 1;
    while (now() < until_ns)
        for (int i = 0; i < 2000; ++i) value = value * 6364136223846793005ULL + 1442695040888963407ULL;
    sink += value;
}

[[gnu::noinline]] void sleep_a_while() {
    const timespec time{0, 20'000'000};
    nanosleep(&time, nullptr);
}

[[gnu::noinline]] void read_from_pipe(int fd) {
    char byte = 0;
    if (read(fd, &byte, 1) != 1) std::abort();
}

[[gnu::noinline]] void wait_for_mutex(std::mutex& mutex) { mutex.lock(); }

[[gnu::noinline]] void read_from_disk(int fd, void* buffer, std::uint64_t turn) {
    if (pread(fd, buffer, 4096, static_cast<off_t>(turn % 1024 * 4096)) < 0) std::abort();
}

void sleeper() {
    Life life("sleeper");
    while (now() < end_ns) {
        life.wait(sleep_a_while);
        burn(now() + 5'000'000);
    }
}

void pipe_reader(int fd) {
    Life life("pipe-reader");
    while (now() < end_ns) life.wait([&] { read_from_pipe(fd); });
}

void pipe_writer(int fd) {
    Life life("pipe-writer");
    while (now() < end_ns + 100'000'000) {
        life.wait(sleep_a_while);
        if (write(fd, "x", 1) != 1) std::abort();
    }
}

// One thread holds the mutex for 30 ms while it sleeps. The other one tries to lock it meanwhile.
std::mutex contended;
std::atomic<bool> held{false}, waiter_gone{false};

void mutex_holder() {
    Life life("mutex-holder");
    while (!waiter_gone) {
        contended.lock();
        held = true;
        const timespec time{0, 30'000'000};
        life.wait([&] { nanosleep(&time, nullptr); });
        held = false;
        contended.unlock();
        const timespec pause{0, 2'000'000};
        life.wait([&] { nanosleep(&pause, nullptr); });
    }
}

void mutex_waiter() {
    Life life("mutex-waiter");
    while (now() < end_ns) {
        while (!held && now() < end_ns) sched_yield();
        life.wait([] { wait_for_mutex(contended); });
        contended.unlock();
    }
    waiter_gone = true;
}

// Two threads share one CPU, so each of them waits half of the time.
void burner(const char* name, int cpu) {
    Life life(name);
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    sched_setaffinity(0, sizeof set, &set);
    burn(end_ns);
}

void disk_reader(const char* path) {
    Life life("disk-reader");
    const int fd = open(path, O_RDONLY | O_DIRECT | O_CLOEXEC);
    void* buffer = nullptr;
    if (fd < 0 || posix_memalign(&buffer, 4096, 4096) != 0) std::abort();
    for (std::uint64_t turn = 0; now() < end_ns; ++turn) life.wait([&] { read_from_disk(fd, buffer, turn * 37); });
    close(fd);
    std::free(buffer);
}

// Sleeps all the time.
void idler() {
    Life life("idler");
    life.wait([] {
        const std::uint64_t rest = end_ns > now() ? end_ns - now() : 1;
        const timespec time{static_cast<time_t>(rest / 1'000'000'000), static_cast<long>(rest % 1'000'000'000)};
        nanosleep(&time, nullptr);
    });
}

template <class Function, class... Arguments>
std::thread started(Function function, Arguments... arguments) {
    return std::thread([=, created = now()] {
        created_ns = created;
        function(arguments...);
    });
}

}  // namespace

int main(int argc, char** argv) {
    setvbuf(stdout, nullptr, _IOLBF, 0);
    const double seconds = argc > 1 ? std::atof(argv[1]) : 3;
    end_ns = now() + static_cast<std::uint64_t>(seconds * 1e9);
    int ends[2];
    if (pipe(ends) != 0) return 1;
    std::vector<std::thread> threads;
    threads.push_back(started(sleeper));
    threads.push_back(started(pipe_reader, ends[0]));
    threads.push_back(started(pipe_writer, ends[1]));
    threads.push_back(started(mutex_holder));
    threads.push_back(started(mutex_waiter));
    threads.push_back(started(idler));
    threads.push_back(started(burner, "burner-1", 0));
    threads.push_back(started(burner, "burner-2", 0));
    if (argc > 2) threads.push_back(started(disk_reader, argv[2]));
    std::puts("ready");
    for (std::thread& thread : threads) thread.join();
    std::printf("joined %llu\n", static_cast<unsigned long long>(now()));
    for (const std::string& line : lines) std::fputs(line.c_str(), stdout);
    return 0;
}
