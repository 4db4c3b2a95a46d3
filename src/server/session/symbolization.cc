#include "server/session/symbolization.h"

#include <asio/post.hpp>
#include <asio/thread_pool.hpp>

#include <utility>

#include "symbol/symbolizer.h"

namespace flamewire::server {

Symbolization::Symbolization(symbol::Symbolizer& symbolizer,
                             std::function<void(const std::shared_ptr<Session>&)> changed)
    : symbolizer_(symbolizer), changed_(std::move(changed)), thread_(std::make_unique<asio::thread_pool>(1)) {}

Symbolization::~Symbolization() { stop(); }

void Symbolization::schedule(const std::shared_ptr<Session>& session) {
    if (session->symbols_queued.exchange(true)) return;
    post([this, session] {
        // Cleared first: what arrives while this runs queues the next job.
        session->symbols_queued = false;
        finish(session);
    });
}

void Symbolization::finish(const std::shared_ptr<Session>& session) {
    session->symbolize(symbolizer_, [&] { changed_(session); });
    // Whoever waits for the names does not wait for the file.
    if (!session->fed()) post([session] { session->keep_symbols(); });
}

symbol::Config Symbolization::symbol_config() const { return symbolizer_.config(); }

void Symbolization::post(std::function<void()> job) { asio::post(*thread_, std::move(job)); }

void Symbolization::stop() {
    thread_->stop();
    thread_->join();
}

}  // namespace flamewire::server
