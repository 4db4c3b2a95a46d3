// Hides a secret on the command line: every user who runs ps can see it.
#pragma once

#include <cstring>
#include <string_view>

namespace flamewire::secure {

// Overwrites the value of `option` ("--pair") in the process's own arguments, for "--pair=X" as well as "--pair X".
// Copy the arguments first.
inline void hide_argument(char** argv, std::string_view option) {
    const auto overwrite = [](char* text) { std::memset(text, 'x', std::strlen(text)); };
    for (; *argv != nullptr; ++argv) {
        const std::string_view word = *argv;
        if (word == "--") return;  // the rest belongs to another program
        if (word == option && argv[1] != nullptr)
            overwrite(*++argv);
        else if (word.starts_with(option) && word.substr(option.size()).starts_with('='))
            overwrite(*argv + option.size() + 1);
    }
}

}  // namespace flamewire::secure
