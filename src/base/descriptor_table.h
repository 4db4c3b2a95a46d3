// The limit and the table of this process's descriptors.
#pragma once

#include <cstddef>

namespace flamewire {

// Raises the soft limit of open files to the hard limit, and makes room for `expected` descriptors (8 bytes each), as far
// as the limit allows. Call it before threads start. In a process with threads, the kernel waits for an RCU grace period
// whenever the table grows, which can take seconds on a busy machine (fs/file.c, expand_fdtable).
void prepare_descriptors(std::size_t expected);

}  // namespace flamewire
