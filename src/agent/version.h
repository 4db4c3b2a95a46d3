// Describes this build of the agent and its features, for --version. The output is the same on every machine. The hello
// (hello.h) reports what works on this machine.
#pragma once

#include <string>

namespace flamewire::agent {

// Lowercase hex; empty if the program was linked without one. Read from memory, because the file may be missing or
// unreadable.
std::string own_build_id();

std::string version_text();

}  // namespace flamewire::agent
