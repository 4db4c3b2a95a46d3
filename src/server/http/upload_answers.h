// PUT, GET and DELETE /api/uploads/<id>: uploads a file in slices. Other endpoints then refer to it by its id.
#pragma once

#include "server/http/request.h"
#include "server/session/upload_store.h"

namespace flamewire::server {

inline constexpr std::string_view uploads_prefix = "/api/uploads/";

Answer upload_answer(UploadStore& uploads, const Request& request);

}  // namespace flamewire::server
