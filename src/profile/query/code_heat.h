// Weights of machine code and of inlined functions: at which addresses a function is, what each address costs, and
// which functions were inlined at a line. Pure, like query.h.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/code_address.h"
#include "profile/store/model.h"
#include "profile/store/store.h"

namespace flamewire::profile {

// A function's name without the suffixes of copies and parts that compilers make (.cold, .isra.0, [clone .part.1] …).
std::string_view base_function(std::string_view name);

// An address at which a function was seen, regardless of the filter.
struct CodePlace {
    ModuleId module = 0;
    CodeAddress address;
    bool inlined = false;  // the function was inlined into the one at this address
};
// The places of a function and of its copies and parts, by module and address. An empty module means any module.
std::vector<CodePlace> code_places(const Store& store, std::string_view function, std::string_view module);

// The places with a frame at a line of a file. If there are none, uses the nearest earlier line that has one, else the
// nearest later line.
std::vector<CodePlace> line_places(const Store& store, std::string_view file, std::uint32_t line);

// One address of a module; rows are sorted by address. self: the innermost frame was here. total: any frame of the
// stack was here, counted once per stack.
struct AddressRow {
    CodeAddress address;
    Weight self, total;
};
std::vector<AddressRow> address_heat(const Store& store, const Filter& filter, ModuleId module);

// A function that was inlined at a line of a file. total: counted once per stack.
struct InlineRow {
    std::uint32_t line = 0;
    Function function;
    StringId file = 0;  // source file of the function; function_line is its first line that was seen
    std::uint32_t function_line = 0;
    Weight total;
};
// By line, then by total weight, descending.
std::vector<InlineRow> inlined_at(const Store& store, const Filter& filter, std::string_view file);

}  // namespace flamewire::profile
