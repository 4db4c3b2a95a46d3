#include "server/link/turned_away_list.h"

#include <fmt/format.h>

#include "base/clock.h"
#include "server/limits.h"

namespace flamewire::server {

void TurnedAwayList::add(const std::string& address, const std::string& reason) {
    log_.warn(fmt::format("connection from {} closed: {}", address, reason));
    {
        const std::lock_guard lock(mutex_);
        list_.push_front({address, reason, realtime_ns()});
        if (list_.size() > limits::turned_away) list_.pop_back();
    }
    added_();
}

std::vector<TurnedAway> TurnedAwayList::recent() const {
    const std::lock_guard lock(mutex_);
    return {list_.begin(), list_.end()};
}

}  // namespace flamewire::server
