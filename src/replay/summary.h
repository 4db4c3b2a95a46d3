// What a replayed recording sent, as sorted lines of text: weighted call chains by event and thread, times of threads,
// losses, and how stacks were unwound. Addresses are relative to their module, so that lines do not depend on symbols.
// Consecutive equal frames become one frame with " *COUNT".
#pragma once

#include <string>
#include <vector>

#include "wire/batch.h"

namespace flamewire::replay {

std::vector<std::string> summarize(const std::vector<wire::Batch>& batches);

}  // namespace flamewire::replay
