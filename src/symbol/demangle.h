// Linker names to the names that people wrote: C++ (Itanium ABI), Rust (v0, and legacy without its hash), D.
#pragma once

#include <string>
#include <string_view>

namespace flamewire::symbol {

// The readable name, or `name` itself when it is not mangled or is malformed. The @plt of a call stub stays.
std::string demangle(std::string_view name);

}  // namespace flamewire::symbol
