// Weights of machine code and of what was inlined: where the addresses of a function are, what each address costs, and
// which functions a line has inlined. Pure, like query.h.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "profile/store/model.h"
#include "profile/store/store.h"

namespace flamewire::profile {

// A function's name without the marks of compilers for copies and parts of it (.cold, .isra.0, [clone .part.1] …).
std::string_view base_function(std::string_view name);

// An address at which a function was seen, whatever the filter.
struct CodePlace {
    ModuleId module = 0;
    std::uint64_t address = 0;    // ELF virtual address
    bool return_address = false;  // then the call is before it
    bool inlined = false;         // the function was inlined into the one that is there
};
// Of a function and its copies and parts, by module and address. An empty module: any.
std::vector<CodePlace> code_places(const Store& store, std::string_view function, std::string_view module);

// Of what has a frame at a line of a file; where none is, at the line before that has one, else behind it.
std::vector<CodePlace> line_places(const Store& store, std::string_view file, std::uint32_t line);

// Of one module, by address. self: the innermost frame was here. total: any frame of the stack was, once a stack.
struct AddressRow {
    std::uint64_t address = 0;
    bool return_address = false;
    Weight self, total;
};
std::vector<AddressRow> address_heat(const Store& store, const Filter& filter, ModuleId module);

// A function that was inlined at a line of a file. total: once a stack.
struct InlineRow {
    std::uint32_t line = 0;
    Function function;
    StringId file = 0;  // where the function itself is: its first line that was seen
    std::uint32_t function_line = 0;
    Weight total;
};
// By line, then by total weight, descending.
std::vector<InlineRow> inlined_at(const Store& store, const Filter& filter, std::string_view file);

}  // namespace flamewire::profile
