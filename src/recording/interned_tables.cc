#include "recording/interned_tables.h"

namespace flamewire::recording {

wire::Id InternedTables::location(const wire::Location& location) {
    const bool named = location.name != 0 || location.file != 0 || location.line != 0;
    const wire::Id id =
        named ? names_.find_or_add({location.name, location.module, location.file, location.line, location.flags},
                                   locations.next())
              : addresses_.find_or_add({location.address, location.module, location.flags}, locations.next());
    if (id == locations.next()) locations.add(location);
    return id;
}

wire::Id InternedTables::stack(wire::Id parent, wire::Id location) {
    const wire::Id id = nodes_.find_or_add({{parent, location}}, stacks.next());
    if (id == stacks.next()) stacks.add({parent, location});
    return id;
}

std::vector<wire::Location> InternedTables::all_locations() const {
    std::vector<wire::Location> all(locations.next());
    addresses_.each(
        [&](const AddressKey& key, wire::Id id) { all[id] = {key.module, key.address, key.flags, 0, 0, 0}; });
    names_.each(
        [&](const NameKey& key, wire::Id id) { all[id] = {key.module, 0, key.flags, key.name, key.file, key.line}; });
    return all;
}

std::vector<wire::StackNode> InternedTables::all_stacks() const {
    std::vector<wire::StackNode> all(stacks.next());
    nodes_.each([&](const NodeKey& key, wire::Id id) { all[id] = key; });
    return all;
}

}  // namespace flamewire::recording
