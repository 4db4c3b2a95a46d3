// Decides when to ask an agent for names of kernel addresses, which it then adds to its next batch. A value of one
// connection.
#pragma once

#include <chrono>
#include <cstddef>

namespace flamewire::server {

class KernelNameRequests {
public:
    using Clock = std::chrono::steady_clock;

    // `missing`: addresses that the symbolizer cannot resolve. True if it is time for a request: some have been missing
    // for a second, and new ones since the last request.
    bool due(std::size_t missing, Clock::time_point now = Clock::now());
    // Another recording begins.
    void reset();

private:
    Clock::time_point requested_at_{}, missing_since_{};
    std::size_t missing_at_request_ = 0;
};

}  // namespace flamewire::server
