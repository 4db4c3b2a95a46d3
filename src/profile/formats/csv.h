// The table of functions as comma-separated values, for spreadsheets: one header line, then the heaviest first.
#pragma once

#include <string>

#include "base/result.h"
#include "profile/formats/export_limit.h"
#include "profile/store/model.h"
#include "profile/store/store.h"

namespace flamewire::profile {

// Of one event (the filter's, or all added up when they have one unit). RFC 4180, UTF-8, lines end in CRLF; control
// characters of names are spaces. too_large.
Result<std::string> csv(const Store& store, const Filter& filter, std::size_t max_bytes = max_export_bytes);

}  // namespace flamewire::profile
