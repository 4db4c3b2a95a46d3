// Names of kernel functions for a recording of exactly the kernel that runs here. An equal build-id is sufficient for
// the image, whichever boot it was: relative to _text, the image is always the same. It is not sufficient for modules.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>

#include "base/result.h"
#include "profile/formats/recording_builder.h"
#include "symbol/files/symbol_table.h"

namespace flamewire::profile::perf_data {

// The functions of the image itself, at addresses relative to _text: the lines of kallsyms up to _etext that do not
// belong to a module.
Result<symbol::SymbolTable> image_functions(std::string_view kallsyms);

// The lines of kallsyms that name the symbols at `addresses` (relative to _text) and the symbols after them. Few lines
// remain, and they give the same names as all lines would. Empty: kallsyms is not ordered by address up to _etext. All
// known kernels order it.
std::string lines_around(std::string_view kallsyms, const std::set<std::uint64_t>& addresses);

// Adds the functions that contain `addresses` (relative to _text) to `builder`, as symbols of the module `image`. Adds
// none if `build_id` is not that of the kernel that runs here, or if this kernel hides its addresses.
void name_kernel(RecordingBuilder& builder, wire::Id image, std::string_view build_id,
                 const std::set<std::uint64_t>& addresses);

}  // namespace flamewire::profile::perf_data
