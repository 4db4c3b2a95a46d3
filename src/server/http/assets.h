// The files of the web UI by path, from this executable or from a folder. An unknown path without a dot belongs to the
// page itself, so it gets the page.
#pragma once

#include <string>
#include <string_view>

#include "server/http/request.h"

namespace flamewire::server {

inline constexpr std::size_t max_asset_bytes = std::size_t{16} << 20;

Answer asset_answer(std::string_view path);
// Serves the files directly in `folder`, read at each request: for development. Links and files over max_asset_bytes
// are not served.
Answer folder_answer(const std::string& folder, std::string_view path);
// The bytes of a file, for example "app.js". Empty if there is none.
std::string_view asset_bytes(std::string_view name);

}  // namespace flamewire::server
