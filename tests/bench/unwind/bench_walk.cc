// What the walk itself costs, with warm rules: this program's own stacks, captured in functions of many shapes (with and
// without saved registers, local arrays, calls from libc), walked again and again. Prints nanoseconds for each frame.
#if defined(__x86_64__)

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "elf/elf_file.h"
#include "unwind/unwinder.h"

using namespace flamewire;
using namespace flamewire::unwind;

namespace {

struct Sample {
    Registers registers;
    std::vector<std::byte> stack;
};
std::vector<Sample> samples;
std::uint64_t stack_end = 0;
std::size_t samples_wanted = 2000;

// Registers and stack as the kernel would copy them, up to 16 KiB.
__attribute__((noinline)) void capture() {
    std::array<std::uint64_t, 8> values{};
    asm volatile(
        "mov %%rbx, 0(%0); mov %%rbp, 8(%0); mov %%rsp, 16(%0); mov %%r12, 24(%0); mov %%r13, 32(%0);"
        "mov %%r14, 40(%0); mov %%r15, 48(%0); lea 0(%%rip), %%rax; mov %%rax, 56(%0)"
        :
        : "r"(values.data())
        : "rax", "memory");
    constexpr std::array<std::uint8_t, 8> numbers{3, 6, 7, 12, 13, 14, 15, 16};
    Sample sample;
    for (std::size_t i = 0; i < numbers.size(); ++i) sample.registers.set(numbers[i], values[i]);
    const std::size_t size = std::min<std::size_t>(16384, stack_end - values[2]);
    sample.stack.resize(size);
    std::memcpy(sample.stack.data(), reinterpret_cast<const void*>(values[2]), size);
    samples.push_back(std::move(sample));
}

// The captured paths: pseudo-random, the same in every run.
std::uint32_t dice = 1;
std::uint32_t throw_dice() {
    dice = dice * 1664525 + 1013904223;
    return dice >> 16;
}

using Step = std::uint64_t (*)(unsigned depth, std::uint64_t a, std::uint64_t b);
extern const std::array<Step, 64> steps;
std::uint64_t next(unsigned depth, std::uint64_t a, std::uint64_t b) {
    if (depth == 0) {
        capture();
        return a + b;
    }
    return steps[throw_dice() % steps.size()](depth - 1, a, b);
}

template <std::size_t n>
__attribute__((noinline)) std::uint64_t step(unsigned depth, std::uint64_t a, std::uint64_t b) {
    volatile std::uint64_t locals[n % 16 + 1];
    locals[n % 16] = a;
    std::uint64_t sum = next(depth, a * (n + 3), b + n);
    if constexpr (n % 3 == 0) sum += a * b;
    if constexpr (n % 5 == 0) sum ^= a + locals[n % 16];
    if constexpr (n % 7 == 0) sum *= b | depth;
    return sum + n + locals[n % 16];
}
template <std::size_t... n>
constexpr std::array<Step, sizeof...(n)> all_steps(std::index_sequence<n...>) {
    return {step<n>...};
}
const std::array<Step, 64> steps = all_steps(std::make_index_sequence<64>());

int compare(const void* left, const void* right) {
    if (samples.size() < samples_wanted) next(2 + throw_dice() % 30, samples.size(), 7);
    return std::memcmp(left, right, 4);
}

struct Module final {
    std::string path;
    std::vector<elf::Segment> segments;
    int fd = -1;
};
struct Space final : CodeMap, ModuleFiles {
    std::vector<CodePiece> pieces;
    std::vector<Module> modules;
    std::optional<CodePiece> find(std::uint64_t address) override {
        const auto after =
            std::upper_bound(pieces.begin(), pieces.end(), address,
                             [](std::uint64_t wanted, const CodePiece& piece) { return wanted < piece.end; });
        if (after == pieces.end() || address < after->start) return std::nullopt;
        return *after;
    }
    Result<elf::ByteSource> open(ModuleId id) override { return elf::source_of_fd(modules[id - 1].fd); }
};

bool add(Space& space, std::uint64_t start, std::uint64_t end, std::uint64_t offset, const std::string& path) {
    Module module{.path = path, .segments = {}, .fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
    if (module.fd < 0) return false;
    const auto header = elf::read_header(elf::source_of_fd(module.fd));
    if (!header) return false;
    const auto address = elf::vaddr_of_offset(header->segments, offset, 4096);
    if (!address) return false;
    space.modules.push_back(module);
    space.pieces.push_back({start, end, static_cast<ModuleId>(space.modules.size()), start - *address});
    return true;
}

void read_maps(Space& space) {
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);) {
        unsigned long start = 0, end = 0, offset = 0;
        std::array<char, 8> rights{};
        if (std::sscanf(line.c_str(), "%lx-%lx %7s %lx", &start, &end, rights.data(), &offset) != 4) continue;
        const std::size_t slash = line.find('/');
        if (line.find("[stack]") != std::string::npos) stack_end = end;
        if (rights[2] == 'x' && slash != std::string::npos) add(space, start, end, offset, line.substr(slash));
    }
}

}  // namespace

int main(int argc, char** argv) {
    const int rounds = argc > 1 ? std::atoi(argv[1]) : 50;
    Space space;
    read_maps(space);
    std::vector<std::uint32_t> numbers(4096);
    for (std::uint32_t& number : numbers) number = throw_dice();
    while (samples.size() < samples_wanted) std::qsort(numbers.data(), numbers.size(), 4, compare);

    Unwinder unwinder(space);
    std::vector<Frame> frames;
    std::uint64_t walked = 0, roots = 0;
    const auto round = [&] {
        for (const Sample& sample : samples) {
            const StackCopy stack{.address = sample.registers.sp(), .bytes = sample.stack, .cut = true};
            roots += unwinder.walk(sample.registers, stack, space, default_max_depth, frames) == StopReason::root;
            walked += frames.size();
        }
    };
    using Clock = std::chrono::steady_clock;
    const auto cold_begin = Clock::now();
    round();
    const double cold = std::chrono::duration<double, std::nano>(Clock::now() - cold_begin).count();
    const std::uint64_t compiled = unwinder.counts().rules_compiled;
    const double cold_frames = static_cast<double>(walked);
    const std::uint64_t cold_roots = roots;
    double best = 1e30;
    for (int i = 0; i < rounds; ++i) {
        walked = 0;
        const auto begin = Clock::now();
        round();
        const double took = std::chrono::duration<double, std::nano>(Clock::now() - begin).count();
        best = std::min(best, took / static_cast<double>(walked));
    }
    std::printf(
        "{\"samples\": %zu, \"frames_per_sample\": %.1f, \"roots\": %llu, \"rules\": %llu, \"cold_ns_per_frame\": "
        "%.1f, "
        "\"warm_ns_per_frame\": %.2f, \"memory_bytes\": %zu}\n",
        samples.size(), cold_frames / static_cast<double>(samples.size()), static_cast<unsigned long long>(cold_roots),
        static_cast<unsigned long long>(compiled), cold / cold_frames, best, unwinder.memory_bytes());
    return cold_roots == samples.size() ? 0 : 1;
}

#else
#include <cstdio>
int main() {
    std::puts("this benchmark captures stacks on x86-64 only");
    return 0;
}
#endif
