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

// Returns from several places, with a switch through a table.
[[gnu::noinline]] std::int64_t probed_returns(std::int64_t number) {
    if (number < 0) return -1;
    sink = sink + 1;
    switch (number % 6) {
        case 0: probed_leaf("zero", 0); return 100;
        case 1: probed_inner("one", 1); return sink >= 0 ? 101 : 0;
        case 2: probed_outer(2); return 102;
        case 3: return 103;
        case 4:
            probed_leaf("four", 4);
            probed_leaf("four", 4);
            return 104;
        default: break;
    }
    probed_outer(3);
    return number;
}

// Ends with a jump to probed_returns(number + 1). The workloads are compiled without such jumps.
std::int64_t probed_tail(std::int64_t number);
#if defined(__x86_64__)
__asm__(
    ".text\n.globl probed_tail\n.type probed_tail,@function\nprobed_tail:\n.cfi_startproc\n"
    "inc %rdi\njmp probed_returns\n.cfi_endproc\n.size probed_tail,.-probed_tail\n");
#elif defined(__aarch64__)
__asm__(
    ".text\n.globl probed_tail\n.type probed_tail,%function\nprobed_tail:\n.cfi_startproc\n"
    "add x0, x0, #1\nb probed_returns\n.cfi_endproc\n.size probed_tail,.-probed_tail\n");
#else
std::int64_t probed_tail(std::int64_t number) { return probed_returns(number + 1); }
#endif

// One in three calls does not return.
[[gnu::noinline]] int probed_may_leave(int number, const char* way) {
    sink = sink + number;
    if (number % 3 != 0) return number * 2;
    if (way[0] == 'e') throw std::runtime_error("thrown by a function that may return");
    if (way[0] == 'j') std::longjmp(landing, 1);
    if (way[0] == 'c') ::pthread_cancel(::pthread_self());
    ::pthread_testcancel();
    return number;
}

// Catches what it calls.
[[gnu::noinline]] int probed_catches(int number) {
    try {
        return probed_may_leave(number, "e") + 1;
    } catch (const std::runtime_error&) {
        return -1;
    }
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

void returns(int count) {
    std::int64_t sum = 0;
    for (int i = 0; i < count; ++i) sum += probed_returns(i - 1) + probed_tail(i);
    std::printf("sum %lld\n", static_cast<long long>(sum));
}

// Leaves a function that mostly returns.
void leaves(int count, const char* way) {
    static volatile int returned = 0;
    static volatile int number = 0;
    while (number < count) {
        if (way[0] == 'e' && probed_catches(number) >= 0) returned = returned + 1;
        if (way[0] == 'j' && setjmp(landing) == 0) {
            probed_may_leave(number, way);
            returned = returned + 1;
        }
        const auto run = [way] {
            probed_may_leave(number, way);
            returned = returned + 1;
        };
        if (way[0] == 'c') std::thread(run).join();
        number = number + 1;
    }
    std::printf("returned %d\n", static_cast<int>(returned));
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
    if (scene == "returns") returns(count);
    if (scene == "leaves" && argc > 3) leaves(count, argv[3]);
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
