// The views of one session as answers: call tree, functions, threads, source. Each takes the session and the
// request; errors come back as answers of the one error shape.
#pragma once

#include "profile/query/query.h"
#include "server/http/request.h"
#include "server/session/debug_fetch.h"
#include "server/session/session.h"
#include "server/source/source_lookup.h"

namespace flamewire::server {

// How a call tree is asked for: min_share path hide order merge recursion.
Result<profile::TreeOptions> tree_options(const Request& request);

Answer flamegraph_answer(const Session& session, const Request& request);
// function=NAME, module=MODULE (any, when it is not given)
Answer callers_answer(const Session& session, const Request& request);
Answer functions_answer(const Session& session, const Request& request);
// Also how each thread is and how it used the CPU (thread_answers.cc); slices=N: its samples in so many slices.
Answer thread_summary_answer(const Session& session, const Request& request);
// On a CPU, waiting for one, asleep, waiting for a device: of each thread, in sums and slices.
Answer thread_states_answer(const Session& session, const Request& request);
// How long threads waited for a CPU and kept it, and why they left.
Answer scheduling_answer(const Session& session, const Request& request);
Answer thread_view_answer(const Session& session, const Request& request);
// `fetch`: nullptr where no debuginfod server may be asked.
Answer source_answer(const std::shared_ptr<Session>& session, const Request& request, SourceLookup& sources,
                     DebugFetch* fetch);
Answer source_files_answer(const Session& session, const Request& request);
// SVG of one event.
Answer export_flamegraph_answer(const Session& session, const Request& request);
// format=collapsed|json
Answer export_session_answer(const Session& session, const Request& request);

}  // namespace flamewire::server
