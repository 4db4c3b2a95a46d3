// /api/imports: files that were uploaded become sessions.
#pragma once

#include <string_view>

#include "server/http/request.h"
#include "server/session/imports.h"
#include "server/session/upload_store.h"

namespace flamewire::server {

// GET: the last imports and how far they are. POST {"upload", "name"}: begins one; the upload is removed at its end.
Answer imports_answer(Imports& imports, UploadStore& uploads, const Request& request);
// GET, DELETE /api/imports/ID: how far one is; cancels it.
inline constexpr std::string_view imports_prefix = "/api/imports/";
Answer import_answer(Imports& imports, const Request& request);

}  // namespace flamewire::server
