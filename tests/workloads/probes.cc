// A program whose functions are called a known number of times, for tests of probes: `probes-workload SCENE COUNT`.
// Scenes other than `calls` leave probed functions in unusual ways, and report whether they survived.
#include <dlfcn.h>
#include <pthread.h>
#include <sys/sdt.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csetjmp>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

// probes_counted.cc
extern "C" volatile unsigned short probed_counted_semaphore;
extern "C" void probed_static_counted(int number);

namespace {

volatile int sink;  // NOLINT: keeps the calls
std::jmp_buf landing;

}  // namespace

namespace shop {

// Its functions have mangled names; two of them have the same name without arguments.
struct Cart {
    Cart() = default;
    Cart(const Cart&) = delete;
    Cart& operator=(const Cart&) = delete;
    [[gnu::noinline]] ~Cart() { sink = sink + 1; }
    [[gnu::noinline, gnu::used]] void add(int number);
    [[gnu::noinline, gnu::used]] void remove(int number);
    [[gnu::noinline, gnu::used]] void remove(const char* name);
};
void Cart::add(int number) { sink = sink + number; }
void Cart::remove(int number) { sink = sink - number; }
void Cart::remove(const char* name) { sink = sink - name[0]; }

}  // namespace shop

extern "C" {

// The entry is not emulated by kernels, the branch after it is.
[[gnu::noinline]] void probed_leaf(const char* text, int number) {
    if (text == nullptr) return;
    sink = sink + text[0] + number;
}

[[gnu::noinline]] void probed_inner(const char* text, int number) {
    probed_leaf(text, number);
    probed_leaf(nullptr, number);
    sink = sink + 1;
}

[[gnu::noinline]] void probed_outer(int number) {
    static const char* const words[] = {"even", "odd"};
    probed_inner(words[number % 2], number);
    sink = sink + 1;
}

// Calls itself `depth` times.
[[gnu::noinline]] int probed_recursion(int depth) {
    if (depth == 0) {
        probed_outer(depth);
        return 1;
    }
    const int below = probed_recursion(depth - 1);
    sink = sink + below;
    return below + 1;
}

[[gnu::noinline]] void probed_throws(int number) {
    sink = sink + number;
    if (number >= 0) throw std::runtime_error("thrown through probed functions");
}

[[gnu::noinline]] void probed_passes_exception(int number) {
    probed_throws(number);
    sink = sink + 1;
}

[[gnu::noinline]] void probed_jumps(int number) {
    sink = sink + number;
    std::longjmp(landing, 1);
}

[[gnu::noinline]] void probed_waits(std::int64_t number) {
    sink = sink + static_cast<int>(number);
    for (;;) ::pause();
}

}  // extern "C"

namespace {

void calls(int count) {
    shop::Cart cart;
    for (int i = 0; i < count; ++i) {
        cart.add(i);
        probed_outer(i);
        if (i % 10 == 0) sink = sink + probed_recursion(i % 7);
    }
}

void exceptions(int count) {
    int caught = 0;
    for (int i = 0; i < count; ++i) {
        try {
            probed_passes_exception(i);
        } catch (const std::runtime_error&) {
            ++caught;
        }
    }
    std::printf("caught %d\n", caught);
}

void jumps(int count) {
    static volatile int landed = 0;
    static volatile int number = 0;
    while (number < count) {
        if (setjmp(landing) == 0) probed_jumps(number);
        landed = landed + 1;
        number = number + 1;
    }
    std::printf("landed %d\n", static_cast<int>(landed));
}

void cancellations(int count) {
    int cancelled = 0;
    for (int i = 0; i < count; ++i) {
        pthread_t thread{};
        const auto run = [](void* number) -> void* {
            probed_waits(reinterpret_cast<std::intptr_t>(number));
            return nullptr;
        };
        if (pthread_create(&thread, nullptr, run, reinterpret_cast<void*>(static_cast<std::intptr_t>(i))) != 0)
            continue;
        pthread_cancel(thread);
        void* result = nullptr;
        pthread_join(thread, &result);
        if (result == PTHREAD_CANCELED) ++cancelled;
    }
    std::printf("cancelled %d\n", cancelled);
}

void forks(int count) {
    int ended = 0;
    for (int i = 0; i < count; ++i) {
        const pid_t child = ::fork();
        if (child == 0) {
            probed_outer(i);
            ::_exit(0);
        }
        int status = 1;
        if (child > 0 && ::waitpid(child, &status, 0) == child && status == 0) ++ended;
    }
    std::printf("ended %d\n", ended);
}

// Loads the library in `path` again and again. Its function runs for 2 ms.
void loads(int count, const char* path) {
    int called = 0;
    for (int i = 0; i < count; ++i) {
        void* const library = ::dlopen(path, RTLD_NOW);
        if (library == nullptr) continue;
        if (void* const function = ::dlsym(library, "plugin_work")) {
            reinterpret_cast<void (*)()>(function)();
            ++called;
        }
        ::dlclose(library);
    }
    std::printf("called %d\n", called);
}

void static_probes(int count) {
    int counted = 0;
    for (int i = 0; i < count; ++i) {
        const std::int64_t wide = std::int64_t{i} * 1'000'000'000'000;
        STAP_PROBE3(probed, plain, i, wide, "text");
        if (probed_counted_semaphore != 0) ++counted;
    }
    std::printf("with semaphore %d\n", counted);
}

// Busy threads until the end of the time, in seconds.
void busy(int seconds) {
    std::vector<std::thread> threads;
    static volatile bool stop = false;
    for (int i = 0; i < 4; ++i)
        threads.emplace_back([] {
            for (int n = 0; !stop; ++n) {
                probed_outer(n);
                if (n % 256 == 0) ::usleep(1000);
            }
        });
    ::sleep(static_cast<unsigned>(seconds));
    stop = true;
    for (std::thread& thread : threads) thread.join();
    std::puts("survived");
}

}  // namespace

int main(int argc, char** argv) {
    const std::string_view scene = argc > 1 ? argv[1] : "calls";
    const int count = argc > 2 ? std::atoi(argv[2]) : 100;
    if (scene == "calls") calls(count);
    if (scene == "exceptions") exceptions(count);
    if (scene == "jumps") jumps(count);
    if (scene == "cancellations") cancellations(count);
    if (scene == "forks") forks(count);
    if (scene == "loads" && argc > 3) loads(count, argv[3]);
    if (scene == "busy") busy(count);
    if (scene == "static") {
        static_probes(count);
        for (int i = 0; i < count; ++i) probed_static_counted(i);
    }
    return 0;
}
