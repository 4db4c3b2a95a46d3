// Where the files of modules are kept that agents sent or people gave.
#pragma once

#include <string>

#include "symbol/types/module_identity.h"

namespace flamewire::symbol {

// The name of a module's file among those that were sent: its build-id, else a hash of path, size and time.
std::string fetched_name(const ModuleIdentity& module);
// Where among those that agents sent: a build-id is the word of who sends the file, so the files of each pairing key are
// for what that key's agents recorded. Empty: the owner is no key's id.
std::string fetched_path(const std::string& folder, const ModuleIdentity& module);

}  // namespace flamewire::symbol
