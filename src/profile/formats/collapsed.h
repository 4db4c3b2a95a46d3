// Folded stacks, one per line: "comm;outermost;…;innermost count". flamegraph.pl, speedscope and many other tools read
// this format.
#pragma once

#include <cstddef>
#include <string>

#include "profile/formats/export_limit.h"
#include "profile/query/grouping.h"
#include "profile/store/model.h"
#include "profile/store/store.h"

namespace flamewire::profile {

struct CollapsedOptions {
    bool weights = false;           // write weights in the event's unit instead of sample counts
    GroupBy group = GroupBy::none;  // lines begin with the group's name; for processes and threads it replaces the comm
    // Deep stacks with many leaves can produce a lot of text. Stacks beyond this limit become one line per thread name,
    // "comm;[export limit]", so that the total stays correct.
    std::size_t max_bytes = max_export_bytes;
    std::size_t max_stack_bytes = std::size_t{16} << 20;  // a single stack that is longer goes into the same line
};

// Lines are sorted and unique. If several events have rows and the filter names none, each line starts with its event's
// name. Samples without a thread (imports of folded stacks) have no comm in front. In names, ';' becomes ':' and line
// breaks become spaces. Names are the recorded bytes.
std::string collapsed(const Store& store, const Filter& filter, const CollapsedOptions& options = {});

}  // namespace flamewire::profile
