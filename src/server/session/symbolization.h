// The thread that resolves symbols, one session after another. It also loads sessions from disk, which ends with
// resolving their symbols. Queries never wait for it: they show addresses until the symbols are there.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "server/session/catalog.h"
#include "symbol/types/config.h"

namespace asio {
class thread_pool;  // NOLINT(readability-identifier-naming)
}

namespace flamewire::symbol {
class Symbolizer;
}

namespace flamewire::server {

class Symbolization {
public:
    // `changed` is called from the thread whenever frames of a session improve.
    Symbolization(symbol::Symbolizer& symbolizer, std::function<void(const std::shared_ptr<Session>&)> changed);
    ~Symbolization();

    // Resolves soon, on the thread. Repeated calls become one job.
    void schedule(const std::shared_ptr<Session>& session);
    // Resolves now, on the caller's thread. Returns when everything that can be resolved is.
    void finish(const std::shared_ptr<Session>& session);
    // Runs any job that may read files for long. Its exceptions go to the log and, as a sentence, to `failed`.
    void post(std::function<void()> job, std::function<void(const std::string&)> failed = {});
    // Where module files are searched.
    [[nodiscard]] symbol::Config symbol_config() const;
    void stop();

private:
    symbol::Symbolizer& symbolizer_;
    const std::function<void(const std::shared_ptr<Session>&)> changed_;
    const std::unique_ptr<asio::thread_pool> thread_;
};

}  // namespace flamewire::server
