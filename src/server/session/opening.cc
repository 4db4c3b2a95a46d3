#include "server/session/opening.h"

#include <utility>

namespace flamewire::server {

void Opening::when(const std::string& id, Until until, std::function<void()> ready) {
    {
        const std::lock_guard lock(mutex_);
        const auto [at, begins] = under_way_.try_emplace(id);
        if (begins) slow_.post([this, id] { load(id); }, [this, id](const std::string&) { end(id); });
        UnderWay& it = at->second;
        if (until == Until::whole || !it.has_something) {
            (until == Until::whole ? it.whole : it.something).push_back(std::move(ready));
            return;
        }
    }
    ready();
}

void Opening::load(const std::string& id) {
    bool named = false;
    const auto session = catalog_.get(id, [&](const std::shared_ptr<Session>& begun) {
        // The first view has symbols. The few addresses that appear later are resolved at the end.
        if (!std::exchange(named, true)) slow_.finish(begun);
        has_something(id);
        changed_(begun);
    });
    if (session) {
        slow_.finish(*session);
        if (named) changed_(*session);
    }
    end(id);
}

void Opening::end(const std::string& id) {
    UnderWay done;
    {
        const std::lock_guard lock(mutex_);
        auto entry = under_way_.extract(id);
        if (!entry) return;
        done = std::move(entry.mapped());
    }
    for (const auto& ready : done.something) ready();
    for (const auto& ready : done.whole) ready();
}

void Opening::has_something(const std::string& id) {
    std::vector<std::function<void()>> ready;
    {
        const std::lock_guard lock(mutex_);
        UnderWay& it = under_way_.at(id);
        it.has_something = true;
        ready = std::exchange(it.something, {});
    }
    for (const auto& tell : ready) tell();
}

}  // namespace flamewire::server
