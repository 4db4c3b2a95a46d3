// The thread that resolves symbols, one session after another. It also loads sessions from disk, which ends with
// resolving their symbols. Queries never wait for it: they show addresses until the symbols are there. Jobs that
// nobody else should wait for, such as imports, run elsewhere.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "server/session/catalog.h"
#include "server/session/job_thread.h"
#include "symbol/types/config.h"

namespace flamewire::symbol {
class Symbolizer;
}

namespace flamewire::server {

class Symbolization {
public:
    // `changed` is called from the thread whenever frames of a session improve.
    Symbolization(symbol::Symbolizer& symbolizer, std::function<void(const std::shared_ptr<Session>&)> changed);

    // Resolves soon, on the thread. Repeated calls become one job.
    void schedule(const std::shared_ptr<Session>& session);
    // Resolves now, on the caller's thread. Returns when everything that can be resolved is.
    void resolve(const std::shared_ptr<Session>& session);
    // The same. The thread then writes the symbols of an ended session beside its stream.
    void finish(const std::shared_ptr<Session>& session);
    // Runs another job on the thread: see JobThread.
    void post(std::function<void()> job, std::function<void(const std::string&)> failed = {}) {
        thread_.post(std::move(job), std::move(failed));
    }
    // Where module files are searched.
    [[nodiscard]] symbol::Config symbol_config() const;
    void stop() { thread_.stop(); }

private:
    symbol::Symbolizer& symbolizer_;
    const std::function<void(const std::shared_ptr<Session>&)> changed_;
    JobThread thread_{"reading a session or naming its addresses"};
};

}  // namespace flamewire::server
