// speedscope's own format (www.speedscope.app/file-format-schema.json): a sampled profile for each event and thread.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "profile/formats/export_limit.h"
#include "profile/formats/import.h"
#include "profile/store/model.h"
#include "profile/store/store.h"

namespace flamewire::profile {

// Samples stand in the order of time; their weights are the event's. Frames are functions, with the line where one begins.
// What the format has no word for (samples and lines of a stack, process and thread, module and kind of a function) is in
// members "flamewire", which other readers pass over and import_speedscope() reads. The busiest thread is shown first.
// too_large.
Result<std::string> speedscope(const Store& store, const Filter& filter, std::string_view name,
                               std::size_t max_bytes = max_export_bytes);

bool recognises_speedscope(std::string_view beginning);
// Sampled and evented profiles; each is a thread unless it says more.
Result<bool> import_speedscope(ImportJob& job);

}  // namespace flamewire::profile
