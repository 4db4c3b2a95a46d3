// Moves sessions to another machine: GET /api/export/session/<id>?format=flamewire, POST /api/sessions/<id>/sources.
#pragma once

#include <string>

#include "server/http/request.h"
#include "server/session/session.h"
#include "server/source/source_lookup.h"

namespace flamewire::server {

// Whether the request exports a session as an archive.
bool is_archive(const Request& request);

// The archive, in an unnamed file in `scratch_dir`. `sources=1` first stores the source files with the session.
Answer archive_answer(Session& session, const Request& request, SourceLookup& sources, const std::string& scratch_dir);

// Stores the source files with the session and reports which.
Answer bundle_sources_answer(const Session& session, SourceLookup& sources);

}  // namespace flamewire::server
