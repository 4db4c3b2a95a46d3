// A file that is deleted when it is closed, for data that is too large for memory.
#pragma once

#include <string>

#include "base/fd.h"
#include "base/result.h"

namespace flamewire::server {

// Creates it in `folder` without a name, for reading and writing.
Result<UniqueFd> unnamed_file(const std::string& folder);

}  // namespace flamewire::server
