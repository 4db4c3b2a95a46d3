// A file that is gone when it is closed, for what is too large for memory.
#pragma once

#include <string>

#include "base/fd.h"
#include "base/result.h"

namespace flamewire::server {

// In `folder`, where no name leads to it; read and write.
Result<UniqueFd> nameless_file(const std::string& folder);

}  // namespace flamewire::server
