// A secret on a command line is seen by everybody who runs ps.
#pragma once

#include <cstring>
#include <string_view>

namespace flamewire::secure {

// Overwrites what follows `option` ("--pair") in the process's own words, "--pair=X" as well as "--pair X". They must have
// been copied before.
inline void hide_argument(char** argv, std::string_view option) {
    const auto overwrite = [](char* text) { std::memset(text, 'x', std::strlen(text)); };
    for (; *argv != nullptr; ++argv) {
        const std::string_view word = *argv;
        if (word == "--") return;  // what follows is another program's
        if (word == option && argv[1] != nullptr)
            overwrite(*++argv);
        else if (word.starts_with(option) && word.substr(option.size()).starts_with('='))
            overwrite(*argv + option.size() + 1);
    }
}

}  // namespace flamewire::secure
