#include "server/session/session_loader.h"

#include <utility>

namespace flamewire::server {

void SessionLoader::load(const std::string& id, Extent extent, std::function<void()> ready) {
    {
        const std::lock_guard lock(mutex_);
        const auto [at, begins] = pending_.try_emplace(id);
        if (begins) symbols_.post([this, id] { run(id); }, [this, id](const std::string&) { end(id); });
        Pending& it = at->second;
        if (extent == Extent::complete || !it.is_partial) {
            (extent == Extent::complete ? it.complete : it.partial).push_back(std::move(ready));
            return;
        }
    }
    ready();
}

void SessionLoader::run(const std::string& id) {
    bool symbolized = false;
    const auto session = catalog_.get(id, [&](const std::shared_ptr<Session>& partial_session) {
        // The first view has symbols. The few addresses that appear later are resolved at the end.
        if (!std::exchange(symbolized, true)) symbols_.finish(partial_session);
        set_partial(id);
        changed_(partial_session);
    });
    if (session) {
        symbols_.finish(*session);
        if (symbolized) changed_(*session);
    }
    end(id);
}

void SessionLoader::end(const std::string& id) {
    Pending done;
    {
        const std::lock_guard lock(mutex_);
        auto entry = pending_.extract(id);
        if (!entry) return;
        done = std::move(entry.mapped());
    }
    for (const auto& ready : done.partial) ready();
    for (const auto& ready : done.complete) ready();
}

void SessionLoader::set_partial(const std::string& id) {
    std::vector<std::function<void()>> ready;
    {
        const std::lock_guard lock(mutex_);
        Pending& it = pending_.at(id);
        it.is_partial = true;
        ready = std::exchange(it.partial, {});
    }
    for (const auto& call : ready) call();
}

}  // namespace flamewire::server
