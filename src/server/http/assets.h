// The files of the web UI inside this binary, or in a folder, by path. Unknown paths without a dot are the page's own and
// get the page.
#pragma once

#include <string>
#include <string_view>

#include "server/http/request.h"

namespace flamewire::server {

inline constexpr std::size_t max_asset_bytes = std::size_t{16} << 20;

Answer asset_answer(std::string_view path);
// From the files directly in `folder`, read at each request: for development. A link or a file over max_asset_bytes is
// not served.
Answer folder_answer(const std::string& folder, std::string_view path);
// The bytes of one ("app.js"); empty when there is none.
std::string_view asset_bytes(std::string_view name);

}  // namespace flamewire::server
