#include "server/http/assets.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

#include "base/fd.h"
#include "base/file.h"

#ifdef FLAMEWIRE_WEB_ASSETS
#include "web_assets.h"
#endif

namespace flamewire::server {
namespace {

Answer no_such_file() { return error_answer(404, "not_found", "there is no such file"); }

// The file name for a URL path. Paths in subfolders get no page, because its relative URLs would not resolve there.
std::string_view asset_name(std::string_view path) {
    while (path.starts_with('/')) path.remove_prefix(1);
    return path.find_first_of("./") == std::string_view::npos ? std::string_view("index.html") : path;
}

// The same types as in web/embed.mjs. A source map is JSON.
std::string_view content_type(std::string_view name) {
    static constexpr std::array<std::pair<std::string_view, std::string_view>, 5> types{
        {{".html", "text/html; charset=utf-8"},
         {".js", "text/javascript; charset=utf-8"},
         {".css", "text/css; charset=utf-8"},
         {".svg", "image/svg+xml"},
         {".map", "application/json"}}};
    for (const auto& [ending, type] : types)
        if (name.ends_with(ending)) return type;
    return {};
}

// One path component that is not hidden, so it cannot refer to anything outside the folder.
bool is_plain_name(std::string_view name) {
    return !name.empty() && name.size() <= 255 && name.front() != '.' && std::ranges::all_of(name, [](unsigned char c) {
        return std::isalnum(c) != 0 || c == '.' || c == '-' || c == '_';
    });
}

}  // namespace

Answer folder_answer(const std::string& folder, std::string_view path) {
    const std::string_view name = asset_name(path);
    const std::string_view type = content_type(name);
    if (type.empty() || !is_plain_name(name)) return no_such_file();
    const std::string file = folder + "/" + std::string(name);
    const UniqueFd fd(open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    struct stat status{};
    if (!fd || fstat(fd.get(), &status) != 0 || !S_ISREG(status.st_mode)) return no_such_file();
    if (std::cmp_greater(status.st_size, max_asset_bytes))
        return error_answer(413, "too_large", "the file is larger than 16 MiB");
    auto bytes = read_range(fd.get(), 0, static_cast<std::size_t>(status.st_size));
    if (!bytes) return error_answer(bytes.error());
    Answer answer;
    answer.content_type = std::string(type);
    answer.body = std::move(*bytes);
    answer.headers.emplace_back("Cache-Control", "no-cache");
    return answer;
}

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

Answer asset_answer([[maybe_unused]] std::string_view path) {
#ifdef FLAMEWIRE_WEB_ASSETS
    const std::string_view wanted = asset_name(path);
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
    return no_such_file();
}

}  // namespace flamewire::server
