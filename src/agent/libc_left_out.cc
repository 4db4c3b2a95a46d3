// Leaves out of the static agent what glibc has for wide characters, other character sets and other languages (130 KB).
// The agent never calls setlocale(), its streams are never wide, and it names no other character set. The stand-ins are
// weak: a libc that does it differently keeps its own.
#include <cstdarg>
#include <cstdio>
#include <cstdlib>

// glibc's own names, which nobody else may have.
// NOLINTBEGIN(bugprone-reserved-identifier)

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
// Failed assertions and getopt's messages, to streams of either width.
FLAMEWIRE_PRINTS(__fxprintf)
FLAMEWIRE_PRINTS(__fxprintf_nocancel)

// Without a locale each message is its own translation, …
extern "C" {
[[gnu::weak]] char* __dcgettext(const char*, const char* message, int) { return const_cast<char*>(message); }
[[gnu::weak]] char* gettext(const char* message) { return const_cast<char*>(message); }
// … a stream is one of bytes, …
[[gnu::weak]] int _IO_fwide(FILE*, int) { return -1; }
// … and a host name is sent as it stands.
[[gnu::weak]] int __idna_name_classify(const char*) { return 0; }
// What closing a stream would release of a conversion, its lock, and the conversions of the locale "C".
struct __gconv_step;
[[gnu::weak]] void __gconv_release_step(__gconv_step*) {}
[[gnu::weak]] int __gconv_lock;
[[gnu::weak]] void* __wcsmbs_gconv_fcts_c[8];
}

// %ls, and fopen() with another character set. One that is called is a bug of ours and ends the program.
#define FLAMEWIRE_NEVER_CALLED(name)      \
    extern "C" [[gnu::weak]] void name(); \
    void name() { std::abort(); }
FLAMEWIRE_NEVER_CALLED(__wcrtomb)
FLAMEWIRE_NEVER_CALLED(__wcsrtombs)
FLAMEWIRE_NEVER_CALLED(__mbsrtowcs)
FLAMEWIRE_NEVER_CALLED(__libio_codecvt_out)
FLAMEWIRE_NEVER_CALLED(__libio_codecvt_in)
FLAMEWIRE_NEVER_CALLED(__libio_codecvt_length)
FLAMEWIRE_NEVER_CALLED(__libio_codecvt_encoding)
FLAMEWIRE_NEVER_CALLED(__wcsmbs_named_conv)
// NOLINTEND(bugprone-reserved-identifier)
