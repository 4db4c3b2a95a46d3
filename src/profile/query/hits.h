// What views of hits need of a store.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "profile/store/model.h"
#include "profile/store/store.h"

namespace flamewire::profile {

// The functions of a stack, innermost first, inlined ones included; at most `limit`.
std::vector<Function> functions_of(const Store& store, StackId stack, std::size_t limit);

// Calls visit(chunk, index) for each hit of `filter`, in the order in which they came.
void for_each_hit(const Store& store, const Filter& filter,
                  const std::function<void(const HitChunk& chunk, std::size_t index)>& visit);

// The innermost function at a location; empty if it is not known.
std::string place_name(const Store& store, LocationId location);

}  // namespace flamewire::profile
