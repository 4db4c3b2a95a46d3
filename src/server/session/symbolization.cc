#include "server/session/symbolization.h"

namespace flamewire::server {

void Symbolization::schedule(const std::shared_ptr<Session>& session) {
    if (session->symbols_queued.exchange(true)) return;
    asio::post(thread_, [this, session] {
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

void Symbolization::stop() {
    thread_.stop();
    thread_.join();
}

}  // namespace flamewire::server
