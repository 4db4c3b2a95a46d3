// A gzip member in memory, for export formats that are compressed.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace flamewire::profile {

Result<std::string> gzipped(std::string_view bytes);

}  // namespace flamewire::profile
