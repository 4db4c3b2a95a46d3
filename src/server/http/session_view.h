// Runs an answer on a view of one session.
#pragma once

#include "server/http/flamegraph.h"
#include "server/http/parameters.h"
#include "server/http/request.h"
#include "server/session/session.h"

namespace flamewire::server {

// Parses the view, then runs `answer(store, view, head)` with shared access to the store. Errors become answers.
template <class AnswerOf>
Answer with_view(const Session& session, const Request& request, AnswerOf answer) {
    const auto parameters = parse_view(request);
    if (!parameters) return error_answer(parameters.error());
    const std::uint64_t start_ns = session.status().start_ns();
    return session.read([&](const profile::Store& store) -> Answer {
        const auto view = resolve_view(*parameters, store, start_ns);
        if (!view) return error_answer(view.error());
        return answer(store, *view, ViewHead{session.id(), *view, store.version()});
    });
}

}  // namespace flamewire::server
