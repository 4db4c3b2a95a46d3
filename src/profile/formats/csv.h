// The table of functions as comma-separated values, for spreadsheets: one header line, then the functions, heaviest
// first.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "profile/formats/export_limit.h"
#include "profile/store/model.h"
#include "profile/store/store.h"

namespace flamewire::profile {

// Covers one event (the filter's), or the sum of all events; weights are 0 if their units differ. RFC 4180, UTF-8, CRLF
// line ends. Control characters in names become spaces. too_large: the output exceeds `max_bytes`.
Result<std::string> csv(const Store& store, const Filter& filter, std::size_t max_bytes = max_export_bytes);

// Appends a field: on one line, valid UTF-8, quoted if needed, and not a formula for spreadsheets.
void append_csv_field(std::string& out, std::string_view text);

}  // namespace flamewire::profile
