// A path of another machine's root file system that lies in a folder here: its links, also absolute ones, stay inside.
#pragma once

#include <string>
#include <string_view>

namespace flamewire {

// `path` as that machine would see it ("/usr/lib/libc.so") to where it lies below `root`: every symbolic link on the
// way is followed as if `root` were "/", and ".." never leaves it. The file need not exist. Empty when links go round
// in a circle.
std::string path_in_root(const std::string& root, std::string_view path);

}  // namespace flamewire
