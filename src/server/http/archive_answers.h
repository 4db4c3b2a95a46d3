// Sessions on their way to another machine: GET /api/export/session/<id>?format=flamewire, POST
// /api/sessions/<id>/sources.
#pragma once

#include <string>

#include "server/http/request.h"
#include "server/session/session.h"
#include "server/source/source_lookup.h"

namespace flamewire::server {

// Whether the request is for a session's archive.
bool is_archive(const Request& request);

// The archive, made in a nameless file in `scratch_dir`. `sources=1` keeps the source files first.
Answer archive_answer(Session& session, const Request& request, SourceLookup& sources, const std::string& scratch_dir);

// Keeps the source files with the session, and says which.
Answer sources_kept_answer(const Session& session, SourceLookup& sources);

}  // namespace flamewire::server
