// The processed profiles of the Firefox Profiler (profiler.firefox.com), which show time by thread.
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
    std::string_view name;                                        // of what was recorded
    std::int64_t started_ns = 0;                                  // wall clock at the first sample
    std::span<const std::pair<std::string, std::string>> tags{};  // in the viewer's details of the profile
    std::size_t max_bytes = max_export_bytes;
};

// A thread for each event and thread, in tables as version 44 of the format has them; the viewer brings older ones up to
// date. Weights are milliseconds or bytes where the unit is one of these, else samples. What the format has no word for
// (weights in other units) is in a member "flamewire" of each thread.
// too_large.
Result<std::string> firefox(const Store& store, const Filter& filter, const FirefoxOptions& options);

bool recognises_firefox(std::string_view beginning);
// Tables of threads, or shared by them as newer versions have it.
Result<bool> import_firefox(ImportJob& job);

}  // namespace flamewire::profile
