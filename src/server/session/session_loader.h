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

class SessionLoader {
public:
    // `changed` is called from the loading thread each time more of a session can be shown.
    SessionLoader(Catalog& catalog, Symbolization& symbols,
                  std::function<void(const std::shared_ptr<Session>&)> changed)
        : catalog_(catalog), symbols_(symbols), changed_(std::move(changed)) {}

    // How much of a session must be loaded.
    enum class Extent : std::uint8_t { partial, complete };

    // Calls `ready` when the session can be queried, with its symbols, or cannot be loaded (a query then returns the
    // error). Call it from any thread. `ready` runs on the loading thread, or at once.
    void load(const std::string& id, Extent extent, std::function<void()> ready);

private:
    struct Pending {
        bool is_partial = false;
        std::vector<std::function<void()>> partial, complete;
    };
    void run(const std::string& id);
    void end(const std::string& id);
    void set_partial(const std::string& id);

    Catalog& catalog_;
    Symbolization& symbols_;
    const std::function<void(const std::shared_ptr<Session>&)> changed_;
    std::mutex mutex_;
    std::map<std::string, Pending> pending_;
};

}  // namespace flamewire::server
