// The web UI as part of the program. The bytes are made from web/ at build time.
#pragma once

#include <span>
#include <string_view>

namespace flamewire::web {

struct Asset {
    std::string_view path;  // as in the URL: "/index.html", "/app.js", "/app.css", "/favicon.svg"
    std::string_view content_type;
    std::string_view bytes;
};

// All files, sorted by path. They live as long as the program.
std::span<const Asset> assets();

}  // namespace flamewire::web
