// Brings sessions from disk into memory for who asks about them, on the thread of symbols and loads. What is read so far
// can be shown while the rest is being read: an hour of samples takes seconds, its first picture does not.
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
    // `changed` is called from the thread of loads each time there is more of a session to show.
    Opening(Catalog& catalog, Symbolization& slow, std::function<void(const std::shared_ptr<Session>&)> changed)
        : catalog_(catalog), slow_(slow), changed_(std::move(changed)) {}

    // How much of a session has to be there.
    enum class Until : std::uint8_t { something, whole };

    // Calls `ready` when the session can be asked, with its names, or when it cannot be loaded (asking says why). From any
    // thread; on the thread of loads, or at once.
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
