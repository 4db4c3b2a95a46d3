// Causes single page faults and prints the kernel's counts of them: faults-workload PAGES FILE
// Touches PAGES fresh pages of memory, then PAGES pages of FILE that are not in the page cache, each once.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>

namespace {

struct Faults {
    long minor, major;
};

Faults faults() {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return {usage.ru_minflt, usage.ru_majflt};
}

[[gnu::noinline]] Faults touch_memory(std::size_t pages, std::size_t page) {
    void* memory = mmap(nullptr, pages * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) std::abort();
    madvise(memory, pages * page, MADV_NOHUGEPAGE);
    const Faults before = faults();
    for (std::size_t i = 0; i < pages; ++i) static_cast<volatile char*>(memory)[i * page] = 1;
    const Faults after = faults();
    munmap(memory, pages * page);
    return {after.minor - before.minor, after.major - before.major};
}

[[gnu::noinline]] Faults touch_file(const char* path, std::size_t pages, std::size_t page) {
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) std::abort();
    fsync(fd);
    posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    void* memory = mmap(nullptr, pages * page, PROT_READ, MAP_SHARED, fd, 0);
    if (memory == MAP_FAILED) std::abort();
    madvise(memory, pages * page, MADV_RANDOM);  // disables readahead
    const Faults before = faults();
    volatile char sum = 0;
    for (std::size_t i = 0; i < pages; ++i) sum = static_cast<volatile char*>(memory)[i * page];
    (void)sum;
    const Faults after = faults();
    munmap(memory, pages * page);
    close(fd);
    return {after.minor - before.minor, after.major - before.major};
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 3) return 2;
    const auto pages = static_cast<std::size_t>(std::atol(argv[1]));
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    const Faults memory = touch_memory(pages, page);
    const Faults file = touch_file(argv[2], pages, page);
    std::printf("{\"memory\": {\"minor\": %ld, \"major\": %ld}, \"file\": {\"minor\": %ld, \"major\": %ld}}\n",
                memory.minor, memory.major, file.minor, file.major);
    return 0;
}
