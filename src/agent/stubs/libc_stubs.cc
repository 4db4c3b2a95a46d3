// Removes unused parts of glibc from the static agent: wide characters, other character sets and languages (130 KB),
// loading shared libraries (65 KB), printing fractions (45 KB), six variants of text comparison and copying for six
// kinds of x86 (100 KB), and all name services except files and DNS for hosts (35 KB). The agent never calls
// setlocale(), has no wide streams and uses no other character set. It is one file, so loading shared libraries fails.
// fmt formats its numbers, never printf("%f"). It looks up only addresses of hosts (main.cc). The stubs are weak, so a
// libc with a different implementation keeps its own.
#include <link.h>
#include <sys/auxv.h>
#include <sys/mman.h>

#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

// glibc's own names, which are reserved.
// NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming)

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
// Used for failed assertions and getopt's messages, with narrow or wide streams.
FLAMEWIRE_PRINTS(__fxprintf)
FLAMEWIRE_PRINTS(__fxprintf_nocancel)

// Without a locale, each message is its own translation.
extern "C" {
[[gnu::weak]] char* __dcgettext(const char*, const char* message, int) { return const_cast<char*>(message); }
[[gnu::weak]] char* gettext(const char* message) { return const_cast<char*>(message); }
// All streams are byte-oriented.
[[gnu::weak]] int _IO_fwide(FILE*, int) { return -1; }
// Host names are sent unchanged.
[[gnu::weak]] int __idna_name_classify(const char*) { return 0; }
// Releasing a conversion when a stream is closed, its lock, and the conversions of the locale "C".
struct __gconv_step;
[[gnu::weak]] void __gconv_release_step(__gconv_step*) {}
[[gnu::weak]] int __gconv_lock;
[[gnu::weak]] void* __wcsmbs_gconv_fcts_c[8];
}

// %ls, and fopen() with another character set. Calling one is a bug in the agent and aborts the program.
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

// %f, %e, %g and %a.
FLAMEWIRE_NEVER_CALLED(__printf_fp)
FLAMEWIRE_NEVER_CALLED(__printf_fphex)

// Used for host names and the words of /etc/nsswitch.conf.
namespace {

int in_lower_case(char c) { return c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : static_cast<unsigned char>(c); }

int compare_without_case(const char* left, const char* right, std::size_t size) {
    for (std::size_t i = 0; i < size; ++i) {
        const int difference = in_lower_case(left[i]) - in_lower_case(right[i]);
        if (difference != 0 || left[i] == 0) return difference;
    }
    return 0;
}

}  // namespace

extern "C" {
[[gnu::weak]] int strcasecmp(const char* left, const char* right) {
    return compare_without_case(left, right, SIZE_MAX);
}
[[gnu::weak]] int __strcasecmp(const char* left, const char* right) {
    return compare_without_case(left, right, SIZE_MAX);
}
[[gnu::weak]] int strncasecmp(const char* left, const char* right, std::size_t size) {
    return compare_without_case(left, right, size);
}
[[gnu::weak]] int __strncasecmp(const char* left, const char* right, std::size_t size) {
    return compare_without_case(left, right, size);
}
}

// glibc has up to six variants of these for different kinds of x86 (50 KB). The agent uses them only for options, host
// names, addresses and messages.
extern "C" {
[[gnu::weak]] int strncmp(const char* left, const char* right, std::size_t size) {
    for (std::size_t i = 0; i < size; ++i) {
        const int difference = static_cast<unsigned char>(left[i]) - static_cast<unsigned char>(right[i]);
        if (difference != 0 || left[i] == 0) return difference;
    }
    return 0;
}
[[gnu::weak]] char* __stpcpy(char* to, const char* from) {
    const std::size_t size = std::strlen(from);
    std::memcpy(to, from, size + 1);
    return to + size;
}
[[gnu::weak]] char* stpcpy(char* to, const char* from) { return __stpcpy(to, from); }
[[gnu::weak]] char* strcpy(char* to, const char* from) {
    __stpcpy(to, from);
    return to;
}
[[gnu::weak]] char* strcat(char* to, const char* from) {
    __stpcpy(to + std::strlen(to), from);
    return to;
}
[[gnu::weak]] char* strncpy(char* to, const char* from, std::size_t size) {
    const std::size_t copied = ::strnlen(from, size);
    std::memcpy(to, from, copied);
    std::memset(to + copied, 0, size - copied);
    return to;
}
}

// Shared libraries. A name service that is not built in is not found.
extern "C" {
[[gnu::weak]] void* __libc_dlopen_mode(const char*, int) { return nullptr; }
[[gnu::weak]] void* __libc_dlsym(void*, const char*) { return nullptr; }
[[gnu::weak]] void* __libc_dlvsym(void*, const char*, const char*) { return nullptr; }
[[gnu::weak]] int __libc_dlclose(void*) { return 0; }
// For the destructors of thread-local objects, all code belongs to this program.
[[gnu::weak]] link_map* _dl_find_dso_for_object(std::uintptr_t) { return nullptr; }
// There are no paths to search, no library makes a stack executable, and no calls are counted.
[[gnu::weak]] void _dl_init_paths(const char*, const char*, const char*, const char*) {}
[[gnu::weak]] int __nptl_change_stack_perm(void*) { return 0; }
[[gnu::weak]] int _dl_make_stack_executable(void**) { return 0; }
[[gnu::weak]] void _dl_mcount_wrapper_check(void*) {}
// Makes data that is constant after relocation read-only before main(). glibc's own version also handles libraries.
[[gnu::weak]] void _dl_protect_relro(link_map*) {
    const std::uintptr_t page = ::getauxval(AT_PAGESZ);
    // NOLINTNEXTLINE(performance-no-int-to-ptr)
    const auto* const headers = reinterpret_cast<const ElfW(Phdr)*>(::getauxval(AT_PHDR));
    for (std::size_t i = 0; i < ::getauxval(AT_PHNUM); ++i) {
        if (headers[i].p_type != PT_GNU_RELRO) continue;
        const std::uintptr_t start = headers[i].p_vaddr & -page;
        const std::uintptr_t end = (headers[i].p_vaddr + headers[i].p_memsz) & -page;
        // NOLINTNEXTLINE(performance-no-int-to-ptr)
        if (start < end) (void)::mprotect(reinterpret_cast<void*>(start), end - start, PROT_READ);
    }
}
}

// Name services. A table refers to these functions of "files", but only those of gethostbyname are ever called. In enum
// nss_status, -1 is "unavailable".
#define FLAMEWIRE_NO_FILES_SERVICE(name) \
    extern "C" [[gnu::weak]] int _nss_files_##name() { return -1; }
#define FLAMEWIRE_NO_FILES_DATABASE(entry) \
    FLAMEWIRE_NO_FILES_SERVICE(set##entry) \
    FLAMEWIRE_NO_FILES_SERVICE(end##entry) \
    FLAMEWIRE_NO_FILES_SERVICE(get##entry##_r)
FLAMEWIRE_NO_FILES_DATABASE(aliasent)
FLAMEWIRE_NO_FILES_SERVICE(getaliasbyname_r)
FLAMEWIRE_NO_FILES_DATABASE(etherent)
FLAMEWIRE_NO_FILES_SERVICE(gethostton_r)
FLAMEWIRE_NO_FILES_SERVICE(getntohost_r)
FLAMEWIRE_NO_FILES_DATABASE(grent)
FLAMEWIRE_NO_FILES_SERVICE(getgrgid_r)
FLAMEWIRE_NO_FILES_SERVICE(getgrnam_r)
FLAMEWIRE_NO_FILES_SERVICE(initgroups_dyn)
FLAMEWIRE_NO_FILES_DATABASE(netent)
FLAMEWIRE_NO_FILES_SERVICE(getnetbyaddr_r)
FLAMEWIRE_NO_FILES_SERVICE(getnetbyname_r)
FLAMEWIRE_NO_FILES_DATABASE(netgrent)
FLAMEWIRE_NO_FILES_DATABASE(protoent)
FLAMEWIRE_NO_FILES_SERVICE(getprotobyname_r)
FLAMEWIRE_NO_FILES_SERVICE(getprotobynumber_r)
FLAMEWIRE_NO_FILES_DATABASE(pwent)
FLAMEWIRE_NO_FILES_SERVICE(getpwnam_r)
FLAMEWIRE_NO_FILES_SERVICE(getpwuid_r)
FLAMEWIRE_NO_FILES_DATABASE(rpcent)
FLAMEWIRE_NO_FILES_SERVICE(getrpcbyname_r)
FLAMEWIRE_NO_FILES_SERVICE(getrpcbynumber_r)
FLAMEWIRE_NO_FILES_DATABASE(servent)
FLAMEWIRE_NO_FILES_SERVICE(getservbyname_r)
FLAMEWIRE_NO_FILES_SERVICE(getservbyport_r)
FLAMEWIRE_NO_FILES_DATABASE(sgent)
FLAMEWIRE_NO_FILES_SERVICE(getsgnam_r)
FLAMEWIRE_NO_FILES_DATABASE(spent)
FLAMEWIRE_NO_FILES_SERVICE(getspnam_r)

// The cache daemon, which is not queried after a call of __nss_configure_lookup(). -1: it is not running.
extern "C" {
[[gnu::weak]] int __nss_not_use_nscd_hosts = 1;
[[gnu::weak]] int __nss_not_use_nscd_services = 1;
[[gnu::weak]] bool __nss_have_localdomain = false;
[[gnu::weak]] std::uint32_t __nscd_get_nl_timestamp() { return 0; }
[[gnu::weak]] int __nscd_getai(const char*, void**, int*) { return -1; }
[[gnu::weak]] int __nscd_gethostbyname_r() { return -1; }
[[gnu::weak]] int __nscd_gethostbyname2_r() { return -1; }
[[gnu::weak]] int __nscd_getservbyname_r() { return -1; }
[[gnu::weak]] int __nscd_getservbyport_r() { return -1; }
}
// NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming)
