// Files of --binary that the symbolizer cannot use, as they are of another build than what was recorded, or of nothing
// that was.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "profile/store/store.h"

namespace flamewire::cli {

// A sentence for each, in the order of `binaries`. Those without a build-id are told from nothing, and left out.
std::vector<std::string> unused_binaries(std::span<const profile::Module> modules,
                                         const std::vector<std::string>& binaries);

}  // namespace flamewire::cli
