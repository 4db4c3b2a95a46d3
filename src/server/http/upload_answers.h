// PUT, GET and DELETE /api/uploads/<id>: a file in slices, for whatever takes one by its id afterwards.
#pragma once

#include "server/http/request.h"
#include "server/session/upload_store.h"

namespace flamewire::server {

inline constexpr std::string_view uploads_prefix = "/api/uploads/";

Answer upload_answer(UploadStore& uploads, const Request& request);

}  // namespace flamewire::server
