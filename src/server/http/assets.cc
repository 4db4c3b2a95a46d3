#include "server/http/assets.h"

#ifdef FLAMEWIRE_WEB_ASSETS
#include "web_assets.h"
#endif

namespace flamewire::server {

std::string_view asset_bytes([[maybe_unused]] std::string_view name) {
#ifdef FLAMEWIRE_WEB_ASSETS
    for (const auto& asset : web::assets()) {
        std::string_view path = asset.path;
        while (path.starts_with('/')) path.remove_prefix(1);
        if (path == name) return asset.bytes;
    }
#endif
    return {};
}

Answer asset_answer(std::string_view path) {
#ifdef FLAMEWIRE_WEB_ASSETS
    while (path.starts_with('/')) path.remove_prefix(1);
    // Below a folder that does not exist the page's own files would not be found.
    const bool page = path.find_first_of("./") == std::string_view::npos;
    const std::string_view wanted = page ? std::string_view("index.html") : path;
    for (const auto& asset : web::assets()) {
        std::string_view name = asset.path;
        while (name.starts_with('/')) name.remove_prefix(1);
        if (name != wanted) continue;
        Answer answer;
        answer.content_type = std::string(asset.content_type);
        answer.fixed_body = asset.bytes;
        answer.headers.emplace_back("Cache-Control", "no-cache");
        return answer;
    }
#endif
    return error_answer(404, "not_found", "there is no such file");
}

}  // namespace flamewire::server
