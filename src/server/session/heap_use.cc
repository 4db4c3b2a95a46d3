#include "server/session/heap_use.h"

#include <malloc.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <new>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define FLAMEWIRE_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define FLAMEWIRE_SANITIZED 1
#endif
#endif
#ifdef FLAMEWIRE_SANITIZED
// Declared in clang's sanitizer/allocator_interface.h. gcc's runtime has these functions, but gcc does not install the
// header.
extern "C" int __sanitizer_install_malloc_and_free_hooks(void (*taken)(const volatile void*, std::size_t),
                                                         void (*freed)(const volatile void*));
extern "C" std::size_t __sanitizer_get_allocated_size(const volatile void* memory);
#endif

namespace {

struct Counter {
    bool counts = false;
    std::int64_t bytes = 0, peak = 0;
    void add(std::size_t size) {
        bytes += static_cast<std::int64_t>(size);
        peak = std::max(peak, bytes);
    }
    void subtract(std::size_t size) { bytes -= static_cast<std::int64_t>(size); }
};
constinit thread_local Counter counter;

}  // namespace

#ifdef FLAMEWIRE_SANITIZED

// A sanitizer distinguishes new from malloc(), so its operators must stay. Its hooks count both.
static void count_taken(const volatile void* /*memory*/, std::size_t size) {
    if (counter.counts) counter.add(size);
}
static void count_freed(const volatile void* memory) {
    if (counter.counts && memory != nullptr) counter.subtract(__sanitizer_get_allocated_size(memory));
}
static void install() {
    static const int installed = __sanitizer_install_malloc_and_free_hooks(count_taken, count_freed);
    (void)installed;
}

#else

static void install() {}

// The other forms of new and delete call these, except those for over-aligned types.
void* operator new(std::size_t size) {
    for (;;) {
        if (void* const memory = std::malloc(std::max<std::size_t>(size, 1)); memory != nullptr) {
            if (counter.counts) counter.add(::malloc_usable_size(memory));
            return memory;
        }
        const std::new_handler handler = std::get_new_handler();
        if (handler == nullptr) throw std::bad_alloc();
        handler();
    }
}

void operator delete(void* memory) noexcept {
    if (counter.counts && memory != nullptr) counter.subtract(::malloc_usable_size(memory));
    std::free(memory);
}

void operator delete(void* memory, std::size_t /*size*/) noexcept { operator delete(memory); }

#endif

namespace flamewire::server {

HeapUse::HeapUse() {
    install();
    counter = {.counts = true};
}

HeapUse::~HeapUse() { counter.counts = false; }

std::int64_t HeapUse::bytes() const { return counter.bytes; }

std::int64_t HeapUse::peak_bytes() const { return counter.peak; }

}  // namespace flamewire::server
