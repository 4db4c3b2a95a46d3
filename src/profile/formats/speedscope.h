// speedscope's own format (www.speedscope.app/file-format-schema.json): a sampled profile per event and thread.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "profile/formats/export_limit.h"
#include "profile/formats/import.h"
#include "profile/store/model.h"
#include "profile/store/store.h"

namespace flamewire::profile {

// Samples are in time order. Their weights are the event's. A frame is a function with the line of its definition. What
// the format cannot express (samples and lines of a stack, process and thread, module and kind of a function) is in
// members "flamewire", which other readers ignore and import_speedscope() reads. The busiest thread is shown first.
// too_large: the output exceeds `max_bytes`.
Result<std::string> speedscope(const Store& store, const Filter& filter, std::string_view name,
                               std::size_t max_bytes = max_export_bytes);

bool recognises_speedscope(std::string_view beginning);
// Reads sampled and evented profiles. Each is a thread unless a member "flamewire" says otherwise.
Result<bool> import_speedscope(ImportJob& job);

}  // namespace flamewire::profile
