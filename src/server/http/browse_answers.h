// GET /api/browse. docs/openapi.yaml has its shape.
#pragma once

#include <vector>

#include "server/http/request.h"
#include "server/source/browse.h"

namespace flamewire::server {

Answer browse_answer(const std::vector<BrowseRoot>& roots, const Request& request);

}  // namespace flamewire::server
