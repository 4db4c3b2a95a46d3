// Loads sessions from disk on demand, on the thread that resolves symbols and loads sessions. A session can be shown
// while the rest of it is read: an hour of samples takes seconds to load, but its first view does not.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "server/session/catalog.h"
#include "server/session/symbolization.h"

namespace flamewire::server {

class Opening {
public:
    // `changed` is called from the loading thread each time more of a session can be shown.
    Opening(Catalog& catalog, Symbolization& slow, std::function<void(const std::shared_ptr<Session>&)> changed)
        : catalog_(catalog), slow_(slow), changed_(std::move(changed)) {}

    // How much of a session must be loaded.
    enum class Until : std::uint8_t { something, whole };

    // Calls `ready` when the session can be queried, with its symbols, or cannot be loaded (a query then returns the
    // error). Call it from any thread. `ready` runs on the loading thread, or at once.
    void when(const std::string& id, Until until, std::function<void()> ready);

private:
    struct UnderWay {
        bool has_something = false;
        std::vector<std::function<void()>> something, whole;
    };
    void load(const std::string& id);
    void end(const std::string& id);
    void has_something(const std::string& id);

    Catalog& catalog_;
    Symbolization& slow_;
    const std::function<void(const std::shared_ptr<Session>&)> changed_;
    std::mutex mutex_;
    std::map<std::string, UnderWay> under_way_;
};

}  // namespace flamewire::server
