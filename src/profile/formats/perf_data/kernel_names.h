// Names of kernel functions for a recording of the very kernel that runs here. The build-id is proof enough for its
// image, whichever boot it was: relative to _text, an image is always the same. It is none for modules.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>

#include "base/result.h"
#include "profile/formats/recording_builder.h"
#include "symbol/files/symbol_table.h"

namespace flamewire::profile::perf_data {

// The functions of the image itself, at addresses relative to _text: what kallsyms has before _etext and of no module.
Result<symbol::SymbolTable> image_functions(std::string_view kallsyms);

// The lines that name what holds `addresses` (relative to _text) and what follows it: few of very many, and what is kept
// names them as all would. Empty: kallsyms is not in the order of addresses up to _etext, as every kernel has had it.
std::string lines_around(std::string_view kallsyms, const std::set<std::uint64_t>& addresses);

// Gives the functions that hold `addresses` (relative to _text) to `builder`, as symbols of the module `image`; none when
// `build_id` is not that of the kernel that runs here, or when it hides its addresses.
void name_kernel(RecordingBuilder& builder, wire::Id image, std::string_view build_id,
                 const std::set<std::uint64_t>& addresses);

}  // namespace flamewire::profile::perf_data
