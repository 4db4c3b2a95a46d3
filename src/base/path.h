// Parts of a path.
#pragma once

#include <string>
#include <string_view>

namespace flamewire {

// "b" of "/a/b". Empty if the path ends with a slash.
inline std::string file_name(std::string_view path) { return std::string(path.substr(path.rfind('/') + 1)); }

// "/a" of "/a/b", "." of "b".
inline std::string folder_of(std::string_view path) {
    const std::size_t slash = path.rfind('/');
    return std::string(slash == std::string_view::npos ? "." : path.substr(0, slash));
}

// The kernel appends this mark to the path of an unlinked file.
inline std::string_view without_deleted_mark(std::string_view path) {
    constexpr std::string_view mark = " (deleted)";
    return path.ends_with(mark) ? path.substr(0, path.size() - mark.size()) : path;
}

}  // namespace flamewire
