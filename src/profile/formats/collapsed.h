// Folded stacks, one line each: "comm;outermost;…;innermost count". What flamegraph.pl, speedscope and many others
// read.
#pragma once

#include <cstddef>
#include <string>

#include "profile/formats/export_limit.h"
#include "profile/query/grouping.h"
#include "profile/store/model.h"
#include "profile/store/store.h"

namespace flamewire::profile {

struct CollapsedOptions {
    bool weights = false;           // the number is the weight in the event's unit, not the samples
    GroupBy group = GroupBy::none;  // lines begin with the group's name; a process's or thread's stands for the comm
    // Deep stacks times many leaves can be a lot of text. Stacks beyond this become one line a thread name,
    // "comm;[export limit]", so that the sum still is the sum.
    std::size_t max_bytes = max_export_bytes;
    std::size_t max_stack_bytes = std::size_t{16} << 20;  // so does a stack that is longer by itself
};

// Lines are sorted and unique; what has no thread (an import of folded stacks) has no comm in front. Without an event in the filter, when several events have rows, each line starts with
// its event's name. In names, ';' becomes ':' and line breaks become spaces. Names are bytes as they were recorded.
std::string collapsed(const Store& store, const Filter& filter, const CollapsedOptions& options = {});

}  // namespace flamewire::profile
