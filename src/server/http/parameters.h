// Parses the parameters of requests.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/result.h"
#include "server/http/request.h"
#include "views/view.h"

namespace flamewire::server {

// The parameters that every view takes: event start end pid tid container pod cgroup. invalid: the message names the
// parameter. `prefix` precedes all parameter names except the event's. The baseline of a comparison uses "base_".
Result<views::Parameters> parse_view(const Request& request, std::string_view prefix = "");

// An empty text means total.
Result<views::Breakdown> parse_breakdown(std::string_view text);

// Parses the whole text as a finite number, or as an unsigned integer.
Result<double> parse_number(std::string_view name, std::string_view text);
Result<std::uint64_t> parse_integer(std::string_view name, std::string_view text);

// The parameter slices: a number from 1 to `most`, or `standard` if it is not given.
Result<std::uint64_t> parse_slices(const Request& request, std::uint64_t standard, std::uint64_t most);

}  // namespace flamewire::server
