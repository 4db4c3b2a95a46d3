#include "base/program.h"

#include <unistd.h>

#include <cstdlib>
#include <string_view>

namespace flamewire {

std::string find_program(const std::string& name) {
    if (name.find('/') != std::string::npos) return name;
    const char* path = std::getenv("PATH");
    std::string_view rest = path != nullptr ? path : "/bin:/usr/bin";
    for (;;) {
        const std::size_t end = rest.find(':');
        const std::string_view directory = rest.substr(0, end);
        std::string file = directory.empty() ? name : std::string(directory) + '/' + name;
        if (::access(file.c_str(), X_OK) == 0) return file;
        if (end == std::string_view::npos) return {};
        rest.remove_prefix(end + 1);
    }
}

}  // namespace flamewire
