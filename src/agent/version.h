// What this build of the agent is and can do, for --version: the same on every machine that runs it. What of that works
// on this machine is the hello's to say (hello.h).
#pragma once

#include <string>

namespace flamewire::agent {

// Lowercase hex; empty when the program was linked without one. Read from memory: the file may be gone or unreadable.
std::string own_build_id();

std::string version_text();

}  // namespace flamewire::agent
