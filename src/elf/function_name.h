// Whether a linker symbol is a function that a person named, without a demangler. Reads only the part of a mangled name
// that a path of names such as `ns::Class::method` needs. Source: Itanium C++ ABI, section 5.1; Rust RFC 2603 (v0).
#pragma once

#include <string>
#include <string_view>

namespace flamewire::elf {

// `request` is one of:
// - the symbol itself: C names, mangled names
// - a pattern for the whole symbol, in which `*` matches any text: `pthread_*`, `_ZN2ns*`
// - a path of names as demanglers print it, without arguments, template arguments and results: `ns::Class::method`,
//   `Class::Class`, `Class::~Class`, `std::sort`, `(anonymous namespace)::f`, `f`, and `crate_name::module::function`. It
//   matches all overloads and instances. Not supported: operators, lambdas, and methods of Rust traits.
// A part of a function that the compiler split off or changed (`.cold`, `.part.0`, `.constprop.0`, `.isra.0`) matches
// only a pattern or the whole symbol. Suffixes that only make a name unique (`.lto_priv.0`, `.llvm.1`) are ignored.
bool matches_function_name(std::string_view request, std::string_view symbol);

// The path of names of a function, as in a request: "ns::Class::method". Other symbols, such as those of C, unchanged.
std::string function_path(std::string_view symbol);

// The same for a variable: `ns::counter`, `Class::count`.
bool matches_variable_name(std::string_view request, std::string_view symbol);

}  // namespace flamewire::elf
