#include "server/link/kernel_name_requests.h"

#include <algorithm>

namespace flamewire::server {
namespace {

constexpr std::chrono::seconds names_wait{1}, request_interval{10};

}  // namespace

bool KernelNameRequests::due(std::size_t missing, Clock::time_point now) {
    missing_at_request_ = std::min(missing_at_request_, missing);
    if (missing == 0) {
        missing_since_ = {};
        return false;
    }
    if (missing_since_ == Clock::time_point{}) missing_since_ = now;
    if (missing <= missing_at_request_ || now - missing_since_ < names_wait || now - requested_at_ < request_interval)
        return false;
    requested_at_ = now;
    missing_at_request_ = missing;
    return true;
}

void KernelNameRequests::reset() {
    missing_at_request_ = 0;
    requested_at_ = {};
}

}  // namespace flamewire::server
