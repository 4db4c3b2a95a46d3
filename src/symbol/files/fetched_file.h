// Where module files are stored that agents sent or that people provided.
#pragma once

#include <string>

#include "symbol/types/module_identity.h"

namespace flamewire::symbol {

// The name under which a module's file is stored: its build-id, else a hash of path, size and time.
std::string fetched_name(const ModuleIdentity& module);
// The path of a file that an agent sent. An agent may claim any build-id, so each pairing key has its own files, used
// only for recordings by that key's agents. Empty: the owner is not the id of a key.
std::string fetched_path(const std::string& folder, const ModuleIdentity& module);

}  // namespace flamewire::symbol
