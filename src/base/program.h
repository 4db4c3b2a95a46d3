// Programs by their names.
#pragma once

#include <string>

namespace flamewire {

// The file that a command of this name is, found as execvp finds it; empty: none.
std::string find_program(const std::string& name);

}  // namespace flamewire
