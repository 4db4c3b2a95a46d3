// PUT, GET and DELETE /api/uploads/{id}: uploads a file in slices. Other endpoints then refer to it by its id.
#pragma once

#include <string>

#include "server/http/request.h"
#include "server/session/upload_store.h"

namespace flamewire::server {

Answer upload_answer(UploadStore& uploads, const std::string& id, const Request& request);

}  // namespace flamewire::server
