// The views of one session as answers: call tree, functions, threads, source. Each takes the session and the request.
// Errors are answers in the common error format.
#pragma once

#include "profile/query/query.h"
#include "server/http/request.h"
#include "server/session/debug_fetch.h"
#include "server/session/session.h"
#include "server/source/source_lookup.h"

namespace flamewire::server {

// The parameters of a call tree: min_share path hide order merge recursion.
Result<profile::TreeOptions> tree_options(const Request& request);

Answer flamegraph_answer(const Session& session, const Request& request);
// function=NAME, module=MODULE (default: any)
Answer callers_answer(const Session& session, const Request& request);
Answer functions_answer(const Session& session, const Request& request);
// What makes the tables of this view mislead.
Answer warnings_answer(const Session& session, const Request& request);
// Also the state and CPU time of each thread (thread_answers.cc). slices=N: its samples in N time slices.
Answer thread_summary_answer(const Session& session, const Request& request);
// Time of each thread on a CPU, waiting for a CPU, sleeping and waiting for a device, as sums and per slice.
Answer thread_states_answer(const Session& session, const Request& request);
// How long threads waited for a CPU and kept it, and why they left it.
Answer scheduling_answer(const Session& session, const Request& request);
Answer thread_view_answer(const Session& session, const Request& request);
// `fetch`: nullptr if no debuginfod server may be used.
Answer source_answer(const std::shared_ptr<Session>& session, const Request& request, SourceLookup& sources,
                     DebugFetch* fetch);
Answer source_files_answer(const Session& session, const Request& request);
// SVG of one event.
Answer export_flamegraph_answer(const Session& session, const Request& request);
// format=collapsed|json
Answer export_session_answer(const Session& session, const Request& request);

}  // namespace flamewire::server
