// Leaves glibc's printing of wide characters (29 KB) out of the static agent. glibc prints failed assertions and getopt's
// messages to streams of either width; ours are never wide. The stand-ins are weak: a libc that does it differently
// keeps its own.
#include <cstdarg>
#include <cstdio>

namespace {

[[gnu::format(printf, 2, 0)]] int print(FILE* stream, const char* format, std::va_list arguments) {
    return std::vfprintf(stream != nullptr ? stream : stderr, format, arguments);
}

}  // namespace

#define FLAMEWIRE_PRINTS(name)                                                                           \
    extern "C" [[gnu::weak, gnu::format(printf, 2, 3)]] int name(FILE* stream, const char* format, ...); \
    int name(FILE* stream, const char* format, ...) {                                                    \
        std::va_list arguments;                                                                          \
        va_start(arguments, format);                                                                     \
        const int written = print(stream, format, arguments);                                            \
        va_end(arguments);                                                                               \
        return written;                                                                                  \
    }
FLAMEWIRE_PRINTS(__fxprintf)           // NOLINT(bugprone-reserved-identifier): glibc's own names
FLAMEWIRE_PRINTS(__fxprintf_nocancel)  // NOLINT(bugprone-reserved-identifier)
