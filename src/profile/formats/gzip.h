// A gzip member in memory, for exports of formats that are read compressed.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace flamewire::profile {

Result<std::string> gzipped(std::string_view bytes);

}  // namespace flamewire::profile
