#include "agent/process/jit_file.h"

#include <algorithm>
#include <cerrno>
#include <span>

#include "base/system.h"

namespace flamewire::agent {

std::uint64_t PollTimes::monotonic_of(std::int64_t realtime) const {
    const std::int64_t age = realtime_ns - realtime;
    const bool plausible = age >= 0 && static_cast<std::uint64_t>(age) <= now_ns;
    return std::clamp(plausible ? now_ns - static_cast<std::uint64_t>(age) : now_ns, std::min(previous_ns, now_ns),
                      now_ns);
}

bool read_piece(int fd, std::uint64_t offset, std::size_t size, std::string& buffer) {
    buffer.resize(size);
    std::size_t got = 0;
    while (got < size) {
        const std::ptrdiff_t count =
            System::current().read_at(fd, offset + got, std::as_writable_bytes(std::span(buffer).subspan(got)));
        if (count == -EINTR) continue;
        if (count <= 0) {
            buffer.resize(got);
            return count == 0;
        }
        got += static_cast<std::size_t>(count);
    }
    return true;
}

}  // namespace flamewire::agent
