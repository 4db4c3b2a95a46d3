// Resolves paths of another root file system that is stored in a directory here. Symbolic links stay inside it, also
// absolute ones.
#pragma once

#include <string>
#include <string_view>

namespace flamewire {

// Maps `path` as seen inside that root ("/usr/lib/libc.so") to its place below `root`. Symbolic links are followed as
// if `root` were "/", and ".." never leaves it. The file need not exist. Empty if links form a loop.
std::string path_in_root(const std::string& root, std::string_view path);

}  // namespace flamewire
