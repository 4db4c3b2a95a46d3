// Describes in words what a person changed in a running recording, for the mark on the time axis. Pure.
#pragma once

#include <string>

#include "wire/batch.h"

namespace flamewire::profile {

// For example "99 Hz became 499 Hz; stacks auto became dwarf". "events" if none of the settings that it describes
// changed.
std::string what_changed(const wire::Recording& before, const wire::Recording& after);

}  // namespace flamewire::profile
