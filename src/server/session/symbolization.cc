#include "server/session/symbolization.h"

#include <utility>

#include "symbol/symbolizer.h"

namespace flamewire::server {

Symbolization::Symbolization(symbol::Symbolizer& symbolizer,
                             std::function<void(const std::shared_ptr<Session>&)> changed)
    : symbolizer_(symbolizer), changed_(std::move(changed)) {}

void Symbolization::schedule(const std::shared_ptr<Session>& session) {
    if (session->symbols_queued.exchange(true)) return;
    post(
        [this, session] {
            // Clear the flag first: data that arrives during this job queues the next one.
            session->symbols_queued = false;
            finish(session);
        },
        [session](const std::string& why) { session->symbols().failed(why); });
}

void Symbolization::resolve(const std::shared_ptr<Session>& session) {
    session->symbols().symbolize(symbolizer_, [&] { changed_(session); });
}

void Symbolization::finish(const std::shared_ptr<Session>& session) {
    resolve(session);
    // Callers that wait for symbols do not wait for the file.
    if (!session->status().receiving())
        post([session] { session->symbols().try_write_cache(); },
             [session](const std::string& why) { session->symbols().failed(why); });
}

symbol::Config Symbolization::symbol_config() const { return symbolizer_.config(); }

}  // namespace flamewire::server
