// Imports the output of Chrome, Node.js and V8: CPU profiles (.cpuprofile, one object with nodes and samples) and
// traces (trace event format: an array of events, or an object with traceEvents), including CPU profiles inside traces.
#pragma once

#include <string_view>

#include "base/result.h"
#include "profile/formats/import.h"

namespace flamewire::profile {

bool recognises_chrome(std::string_view beginning);
// A trace can be incomplete at its end: tools append to it until they are stopped.
Result<bool> import_chrome(ImportJob& job);

}  // namespace flamewire::profile
