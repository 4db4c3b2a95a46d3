// Finds programs by name.
#pragma once

#include <string>

namespace flamewire {

// The file that a command of this name runs, found as execvp(3) finds it. Empty if there is none.
std::string find_program(const std::string& name);

}  // namespace flamewire
