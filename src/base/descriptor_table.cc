#include "base/descriptor_table.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>

#include "base/fd.h"

namespace flamewire {

void prepare_descriptors(std::size_t expected) {
    rlimit limit{};
    if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
    if (limit.rlim_cur < limit.rlim_max) {
        limit.rlim_cur = limit.rlim_max;
        (void)::setrlimit(RLIMIT_NOFILE, &limit);
    }
    // The table grows for the highest descriptor, and never shrinks.
    const auto highest = static_cast<int>(std::min<rlim_t>(limit.rlim_cur, expected)) - 1;
    UniqueFd(::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, highest));
}

}  // namespace flamewire
