// Processed profiles of the Firefox Profiler (profiler.firefox.com), which shows time by thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"
#include "profile/formats/export_limit.h"
#include "profile/formats/import.h"
#include "profile/store/model.h"
#include "profile/store/store.h"

namespace flamewire::profile {

struct FirefoxOptions {
    std::string_view name;                                        // of the recorded target
    std::int64_t started_ns = 0;                                  // wall clock at the first sample
    std::span<const std::pair<std::string, std::string>> tags{};  // shown in the viewer's profile details
    std::size_t max_bytes = max_export_bytes;
};

// Writes one thread per event and thread, in tables of version 44 of the format; the viewer upgrades older versions.
// Weights are milliseconds or bytes if the unit is one of these, else samples. What the format cannot express (weights
// in other units) is in a member "flamewire" of each thread.
// too_large: the output exceeds `max_bytes`.
Result<std::string> firefox(const Store& store, const Filter& filter, const FirefoxOptions& options);

bool recognises_firefox(std::string_view beginning);
// Reads tables per thread, and tables that threads share (newer versions).
Result<bool> import_firefox(ImportJob& job);

}  // namespace flamewire::profile
