// The web UI as part of the program, generated from web/ at build time.
#pragma once

#include <span>
#include <string_view>

namespace flamewire::web {

struct Asset {
    std::string_view path;  // as in the URL: "/index.html", "/app.js", "/app.css", "/favicon.svg"
    std::string_view content_type;
    std::string_view bytes;
};

// All files, sorted by path. They are valid as long as the program runs.
std::span<const Asset> assets();

}  // namespace flamewire::web
