// What a person changed of a recording that runs, in words for the mark on the time axis. Pure.
#pragma once

#include <string>

#include "wire/batch.h"

namespace flamewire::profile {

// "99 Hz became 499 Hz; stacks auto became dwarf"; "events" when nothing that a description names is another.
std::string what_changed(const wire::Recording& before, const wire::Recording& after);

}  // namespace flamewire::profile
