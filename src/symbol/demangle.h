// Converts linker names to source names: C++ (Itanium ABI), Rust (v0, and legacy without its hash), D.
#pragma once

#include <string>
#include <string_view>

namespace flamewire::symbol {

// The readable name, or `name` itself if it is not mangled or is malformed. Keeps the @plt suffix of a call stub.
std::string demangle(std::string_view name);

}  // namespace flamewire::symbol
