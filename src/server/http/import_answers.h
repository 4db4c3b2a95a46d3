// /api/imports: uploaded files become sessions.
#pragma once

#include <string>

#include "server/http/request.h"
#include "server/session/imports.h"
#include "server/session/upload_store.h"

namespace flamewire::server {

// GET: the most recent imports and their progress. POST {"upload", "name"}: begins one. The upload is removed at its
// end.
Answer imports_answer(Imports& imports, UploadStore& uploads, const Request& request);
// /api/imports/{id}. GET: its progress. DELETE: cancels it.
Answer import_answer(Imports& imports, const std::string& id, const Request& request);

}  // namespace flamewire::server
