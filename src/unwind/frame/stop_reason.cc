// Names of stop reasons, for output and for files.
#include "unwind/frame/stop_reason.h"

#include <array>
#include <cstddef>

namespace flamewire::unwind {

std::string_view name_of(StopReason reason) {
    static constexpr std::array<std::string_view, stop_reasons> names{
        "root",          "truncated_copy", "no_map",    "no_info",     "bad_read",
        "not_advancing", "max_depth",      "chain_end", "other_stack", "too_much_work",
    };
    const auto index = static_cast<std::size_t>(reason);
    return index < names.size() ? names[index] : "unknown";
}

}  // namespace flamewire::unwind
