// Finds files of --binary that the symbolizer cannot use, because they are another build of a recorded file or were not
// recorded.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "profile/store/store.h"

namespace flamewire::cli {

// One sentence for each, in the order of `binaries`. Files without a build-id cannot be checked and are skipped.
std::vector<std::string> unused_binaries(std::span<const profile::Module> modules,
                                         const std::vector<std::string>& binaries);

}  // namespace flamewire::cli
