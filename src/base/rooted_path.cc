#include "base/rooted_path.h"

#include <climits>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <vector>

namespace flamewire {
namespace {

constexpr int max_links = 40;  // the kernel's limit

// The components of `path` in reverse, so that the next one is at the back.
void push_components(std::string_view path, std::vector<std::string>& todo) {
    while (!path.empty()) {
        const std::size_t slash = path.rfind('/');
        const std::string_view part = slash == std::string_view::npos ? path : path.substr(slash + 1);
        path = slash == std::string_view::npos ? std::string_view{} : path.substr(0, slash);
        if (!part.empty() && part != ".") todo.emplace_back(part);
    }
}

}  // namespace

std::string path_in_root(const std::string& root, std::string_view path) {
    std::string base = root;
    while (base.ends_with('/')) base.pop_back();
    std::vector<std::string> todo;
    push_components(path, todo);
    std::string inside;  // resolved so far: empty or "/a/b"
    int links = 0;
    std::array<char, PATH_MAX> target{};
    while (!todo.empty()) {
        const std::string part = std::move(todo.back());
        todo.pop_back();
        if (part == "..") {
            inside.erase(std::min(inside.rfind('/'), inside.size()));
            continue;
        }
        std::string here = base;
        here.append(inside).append("/").append(part);
        const ssize_t size = ::readlink(here.c_str(), target.data(), target.size());
        if (size < 0 || static_cast<std::size_t>(size) == target.size()) {
            inside += "/" + part;
            continue;
        }
        if (++links > max_links) return {};
        const std::string_view link(target.data(), static_cast<std::size_t>(size));
        if (link.starts_with('/')) inside.clear();
        push_components(link, todo);
    }
    return base + (inside.empty() ? "/" : inside);
}

}  // namespace flamewire
