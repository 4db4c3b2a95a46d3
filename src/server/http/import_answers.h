// /api/imports: files that were uploaded become sessions.
#pragma once

#include "server/http/request.h"
#include "server/session/imports.h"
#include "server/session/upload_store.h"

namespace flamewire::server {

// GET: the last imports and how far they are. POST {"upload", "name"}: begins one; the upload is removed at its end.
Answer imports_answer(Imports& imports, UploadStore& uploads, const Request& request);

}  // namespace flamewire::server
