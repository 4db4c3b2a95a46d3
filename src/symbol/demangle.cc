#include "symbol/demangle.h"

#include <cctype>
#include <cstdlib>
#include <libiberty/demangle.h>
#include <memory>

namespace flamewire::symbol {
namespace {

// libiberty is bounded in depth, not in time: names longer than any compiler writes are left alone.
constexpr std::size_t longest_name = 64u << 10;

bool looks_like_d(std::string_view name) {
    return name == "_Dmain" ||
           (name.size() > 2 && name.starts_with("_D") && std::isdigit(static_cast<unsigned char>(name[2])) != 0);
}

}  // namespace

std::string demangle(std::string_view name) {
    constexpr std::string_view stub = "@plt";
    if (name.ends_with(stub)) return demangle(name.substr(0, name.size() - stub.size())).append(stub);
    std::string plain(name);
    if (name.size() > longest_name || name.size() < 3 || (name[0] != '_' && name[0] != '.')) return plain;
    const std::unique_ptr<char, decltype(&std::free)> readable(
        looks_like_d(name) ? dlang_demangle(plain.c_str(), DMGL_NO_OPTS)
                           : cplus_demangle(plain.c_str(), DMGL_PARAMS | DMGL_ANSI | DMGL_AUTO),
        &std::free);
    return readable ? std::string(readable.get()) : plain;
}

}  // namespace flamewire::symbol
