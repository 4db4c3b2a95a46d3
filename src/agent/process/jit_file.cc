#include "agent/process/jit_file.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace flamewire::agent {

std::uint64_t LookTimes::monotonic_of(std::int64_t realtime) const {
    const std::int64_t age = realtime_ns - realtime;
    const bool plausible = age >= 0 && static_cast<std::uint64_t>(age) <= now_ns;
    return std::clamp(plausible ? now_ns - static_cast<std::uint64_t>(age) : now_ns, std::min(previous_ns, now_ns),
                      now_ns);
}

bool read_piece(int fd, std::uint64_t offset, std::size_t size, std::string& buffer) {
    buffer.resize(size);
    std::size_t got = 0;
    while (got < size) {
        const ssize_t count = ::pread(fd, buffer.data() + got, size - got, static_cast<off_t>(offset + got));
        if (count < 0 && errno == EINTR) continue;
        if (count <= 0) {
            buffer.resize(got);
            return count == 0;
        }
        got += static_cast<std::size_t>(count);
    }
    return true;
}

}  // namespace flamewire::agent
