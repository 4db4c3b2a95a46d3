// Counter values as an answer: of the whole target, or per thread or CPU, in the order in which they were requested.
// Includes the figures that `perf stat` derives from them.
#pragma once

#include <cstdint>
#include <vector>

#include "counters/derive.h"
#include "profile/store/store.h"
#include "server/http/request.h"
#include "server/session/session.h"

namespace flamewire::server {

// Counters of the whole target, from the first to the last reading.
struct Counted {
    std::vector<counters::Line> lines;
    std::uint64_t elapsed_ns = 0;
};
Counted counted(const profile::Store& store);

Answer counters_answer(const Session& session, const Request& request);

}  // namespace flamewire::server
