// A complete profile as one JSON document, for scripts: metadata of the recording, and the functions and the flame
// graph of each event. docs/profile/exports.md describes the fields.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"
#include "profile/formats/export_limit.h"
#include "profile/store/model.h"
#include "profile/store/store.h"

namespace flamewire::profile {

struct JsonOptions {
    std::string_view name{};  // in the metadata, with the tags
    std::span<const std::pair<std::string, std::string>> tags{};
    std::size_t max_bytes = max_export_bytes;
};

// too_large: the output exceeds `max_bytes`.
Result<std::string> json(const Store& store, const Filter& filter, const JsonOptions& options = {});

// The name of a frame kind in exports and answers: "user", "kernel", "jit", "inlined", "unknown".
std::string_view kind_name(FrameKind kind);

}  // namespace flamewire::profile
