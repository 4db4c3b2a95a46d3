#include "symbol/demangle.h"

#include <algorithm>
#include <cctype>
#include <csetjmp>
#include <cstdlib>
#include <libiberty/demangle.h>
#include <memory>

namespace flamewire::symbol {
namespace {

// libiberty limits depth, but not time and size. Names longer than any compiler writes stay as they are, mangled or
// not. 300 bytes that repeat parts of themselves can expand to gigabytes.
constexpr std::size_t longest_name = 64u << 10;
constexpr std::ptrdiff_t most_references_in_d = 32;  // each can double the name at most every second time

bool looks_like_d(std::string_view name) {
    return name == "_Dmain" ||
           (name.size() > 2 && name.starts_with("_D") && std::isdigit(static_cast<unsigned char>(name[2])) != 0);
}

struct Readable {
    std::string name;
    std::jmp_buf too_long;
};

void append(const char* piece, std::size_t size, void* to) {
    auto& readable = *static_cast<Readable*>(to);
    if (readable.name.size() + size > longest_name) std::longjmp(readable.too_long, 1);
    readable.name.append(piece, size);
}

using Demangler = int(const char* mangled, int options, demangle_callbackref, void*);

// Empty if the name is not mangled in this way, or is too long. longjmp() leaks nothing, because libiberty keeps its
// data on the stack.
std::string readable_name(Demangler* demangler, const char* mangled) {
    Readable readable;
    if (setjmp(readable.too_long) != 0 ||
        demangler(mangled, DMGL_PARAMS | DMGL_ANSI | DMGL_AUTO, append, &readable) == 0)
        readable.name.clear();
    return std::move(readable.name);
}

std::string readable_d_name(const std::string& mangled) {
    if (std::ranges::count(mangled, 'Q') > most_references_in_d) return {};
    const std::unique_ptr<char, decltype(&std::free)> readable(dlang_demangle(mangled.c_str(), DMGL_NO_OPTS),
                                                               &std::free);
    return readable ? std::string(readable.get()) : std::string();
}

std::string demangled(const std::string& mangled) {
    if (mangled.size() > longest_name || mangled.size() < 3 || (mangled[0] != '_' && mangled[0] != '.')) return {};
    if (looks_like_d(mangled)) return readable_d_name(mangled);
    // Rust's legacy names are valid C++ names too.
    std::string readable = readable_name(rust_demangle_callback, mangled.c_str());
    return readable.empty() ? readable_name(cplus_demangle_v3_callback, mangled.c_str()) : readable;
}

}  // namespace

std::string demangle(std::string_view name) {
    constexpr std::string_view stub = "@plt";
    const std::string_view end = name.ends_with(stub) ? stub : std::string_view();
    const std::string mangled(name.substr(0, name.size() - end.size()));
    std::string readable = demangled(mangled);
    if (readable.empty()) readable = mangled;
    return readable.append(end);
}

}  // namespace flamewire::symbol
