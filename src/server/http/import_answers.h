// /api/imports: uploaded files become sessions.
#pragma once

#include <string_view>

#include "server/http/request.h"
#include "server/session/imports.h"
#include "server/session/upload_store.h"

namespace flamewire::server {

// GET: the most recent imports and their progress. POST {"upload", "name"}: begins one. The upload is removed at its
// end.
Answer imports_answer(Imports& imports, UploadStore& uploads, const Request& request);
// /api/imports/ID. GET: its progress. DELETE: cancels it.
inline constexpr std::string_view imports_prefix = "/api/imports/";
Answer import_answer(Imports& imports, const Request& request);

}  // namespace flamewire::server
