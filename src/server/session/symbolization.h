// The thread that names addresses: resolves what sessions have pending, one session after another, and loads sessions
// from disk (which ends with naming them). Queries never wait for it; they show addresses until the names are there.
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
    // `changed` is called from its thread whenever frames of a session became better.
    Symbolization(symbol::Symbolizer& symbolizer, std::function<void(const std::shared_ptr<Session>&)> changed);
    ~Symbolization();

    // Soon, on the thread. Many calls become one job.
    void schedule(const std::shared_ptr<Session>& session);
    // Now, on the caller's thread; returns when everything known has its names.
    void finish(const std::shared_ptr<Session>& session);
    // Any job that may read files for long. What it throws goes to the log and to `failed`, with a sentence.
    void post(std::function<void()> job, std::function<void(const std::string&)> failed = {});
    // Where the files of modules are looked for.
    [[nodiscard]] symbol::Config symbol_config() const;
    void stop();

private:
    symbol::Symbolizer& symbolizer_;
    const std::function<void(const std::shared_ptr<Session>&)> changed_;
    const std::unique_ptr<asio::thread_pool> thread_;
};

}  // namespace flamewire::server
