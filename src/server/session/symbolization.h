// The thread that names addresses: resolves what sessions have pending, one session after another, and loads sessions
// from disk (which ends with naming them). Queries never wait for it; they show addresses until the names are there.
#pragma once

#include <asio/post.hpp>
#include <asio/thread_pool.hpp>

#include <functional>
#include <memory>
#include <string>

#include "server/session/catalog.h"
#include "symbol/symbolizer.h"

namespace flamewire::server {

class Symbolization {
public:
    // `changed` is called from its thread whenever frames of a session became better.
    Symbolization(symbol::Symbolizer& symbolizer, std::function<void(const std::shared_ptr<Session>&)> changed)
        : symbolizer_(symbolizer), changed_(std::move(changed)) {}
    ~Symbolization() { stop(); }

    // Soon, on the thread. Many calls become one job.
    void schedule(const std::shared_ptr<Session>& session);
    // Now, on the caller's thread; returns when everything known has its names.
    void finish(const std::shared_ptr<Session>& session);
    // Any job that may read files for long.
    void post(std::function<void()> job) { asio::post(thread_, std::move(job)); }
    // Where the files of modules are looked for.
    [[nodiscard]] symbol::Config symbol_config() const { return symbolizer_.config(); }
    void stop();

private:
    symbol::Symbolizer& symbolizer_;
    const std::function<void(const std::shared_ptr<Session>&)> changed_;
    asio::thread_pool thread_{1};
};

}  // namespace flamewire::server
