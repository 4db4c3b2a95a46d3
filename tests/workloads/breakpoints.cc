// Accesses variables a known number of times, each kind of access at one line of the source:
//   breakpoints-workload TIMES [wait] [fork] [threads]
// wait: first prints "ready" and waits for a line. fork: a child does the same. threads: so do two other threads.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <thread>

extern "C" void library_write(int value);

extern "C" {
volatile int written = 0;
volatile int beside = 0;
volatile long long long_written = 0;
volatile int only_read = 7;
volatile int several[4] = {};

// The instruction after the store belongs to another line.
[[gnu::noinline]] void write_variable(int value) {
    written = value;  // line of the store
    beside = value + 1;
}

[[gnu::noinline]] void write_long(long long value) {
    long_written = value;  // line of the long store
    beside = 2;
}

[[gnu::noinline]] int read_variable() {
    const int value = only_read;  // line of the load
    beside = 3;
    return value;
}

[[gnu::noinline]] void write_several(int value) {
    several[2] = value;  // line of the store in an array
    beside = 4;
}
}

namespace shop {
volatile int total = 0;
[[gnu::noinline]] void add(int value) {
    total = value;  // line of the store in a namespace
    beside = 5;
}
}  // namespace shop

namespace {

void run(int times) {
    int sum = 0;
    for (int i = 0; i < times; ++i) {
        write_variable(i);
        write_variable(-i);
        write_long(i);
        sum += read_variable();
        write_several(i);
        shop::add(i);
        library_write(i);
        ::usleep(1000);  // more than 20,000 hits per second are thinned
    }
    beside = sum;
}

}  // namespace

int main(int count, char** words) {
    const int times = count > 1 ? std::atoi(words[1]) : 100;
    bool wait = false, forks = false, threads = false;
    for (int i = 2; i < count; ++i) {
        wait = wait || std::string_view(words[i]) == "wait";
        forks = forks || std::string_view(words[i]) == "fork";
        threads = threads || std::string_view(words[i]) == "threads";
    }
    if (wait) {
        std::puts("ready");
        std::fflush(stdout);
        (void)std::getchar();
    }
    if (forks) {
        const pid_t child = ::fork();
        if (child == 0) {
            run(times);
            ::_exit(0);
        }
        ::waitpid(child, nullptr, 0);
    }
    if (threads) {
        std::thread first(run, times), second(run, times);
        first.join();
        second.join();
    }
    run(times);
    return 0;
}
