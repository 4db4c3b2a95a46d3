// The events of the link, which the server passes on. Called on the io thread.
#pragma once

#include <functional>
#include <memory>

#include "server/link/agent_info.h"
#include "server/session/session.h"
#include "symbol/types/module_identity.h"

namespace flamewire::server {

struct AgentEvents {
    std::function<void(const AgentInfo&)> agent_changed;
    std::function<void(const std::shared_ptr<Session>&)> session_changed;
    std::function<void()> sessions_changed;                             // one began, ended, or started waiting
    std::function<void(const symbol::ModuleIdentity&)> module_arrived;  // its file is now in the store
    std::function<void()> turned_away;                                  // the list of refused connections has one more
};

}  // namespace flamewire::server
