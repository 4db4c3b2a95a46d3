#include "server/session/symbolization.h"

#include <asio/post.hpp>
#include <asio/thread_pool.hpp>
#include <spdlog/spdlog.h>

#include <exception>
#include <utility>

#include "symbol/symbolizer.h"

namespace flamewire::server {

Symbolization::Symbolization(symbol::Symbolizer& symbolizer,
                             std::function<void(const std::shared_ptr<Session>&)> changed)
    : symbolizer_(symbolizer), changed_(std::move(changed)), thread_(std::make_unique<asio::thread_pool>(1)) {}

Symbolization::~Symbolization() { stop(); }

void Symbolization::schedule(const std::shared_ptr<Session>& session) {
    if (session->symbols_queued.exchange(true)) return;
    post(
        [this, session] {
            // Clear the flag first: data that arrives during this job queues the next one.
            session->symbols_queued = false;
            finish(session);
        },
        [session](const std::string& why) { session->symbols_failed(why); });
}

void Symbolization::finish(const std::shared_ptr<Session>& session) {
    session->symbolize(symbolizer_, [&] { changed_(session); });
    // Callers that wait for symbols do not wait for the file.
    if (!session->fed())
        post([session] { session->try_keep_symbols(); },
             [session](const std::string& why) { session->symbols_failed(why); });
}

symbol::Config Symbolization::symbol_config() const { return symbolizer_.config(); }

// An exception, for example out of memory for one session, ends its job and not the server.
void Symbolization::post(std::function<void()> job, std::function<void(const std::string&)> failed) {
    asio::post(*thread_, [job = std::move(job), failed = std::move(failed)] {
        try {
            job();
        } catch (const std::exception& error) {
            spdlog::error("reading a session or naming its addresses failed: {}", error.what());
            if (failed) failed(error.what());
        }
    });
}

void Symbolization::stop() {
    thread_->stop();
    thread_->join();
}

}  // namespace flamewire::server
