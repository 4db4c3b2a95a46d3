// A flame graph as one self-contained SVG image, without scripts or external fonts and styles. The root is at the
// bottom. The tooltip of a frame shows its full name and share.
#pragma once

#include <string>

#include "base/result.h"
#include "profile/formats/export_limit.h"
#include "profile/query/grouping.h"
#include "profile/store/model.h"
#include "profile/store/store.h"

namespace flamewire::profile {

struct SvgOptions {
    std::string title = "Flame graph";
    double width_px = 1200;
    GroupBy group = GroupBy::none;
    std::size_t max_bytes = max_export_bytes;
    double least_px = 1;  // narrower frames are omitted, which leaves a gap above their parent
};

// too_large: the image exceeds `max_bytes`.
Result<std::string> svg(const Store& store, const Filter& filter, const SvgOptions& options = {});

}  // namespace flamewire::profile
