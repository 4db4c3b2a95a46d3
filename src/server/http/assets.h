// The files of the web UI inside this binary, by path. Unknown paths without a dot are the page's own and get the page.
#pragma once

#include <string_view>

#include "server/http/request.h"

namespace flamewire::server {

Answer asset_answer(std::string_view path);
// The bytes of one ("app.js"); empty when there is none.
std::string_view asset_bytes(std::string_view name);

}  // namespace flamewire::server
