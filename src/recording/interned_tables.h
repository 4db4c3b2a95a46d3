// The tables of an epoch in which equal locations, and equal stack nodes, have the same id.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/id_table.h"
#include "recording/epoch_tables.h"
#include "wire/batch.h"

namespace flamewire::recording {

class InternedTables : public EpochTables {
public:
    explicit InternedTables(std::uint64_t hash_seed = 0)
        : addresses_(hash_seed), names_(hash_seed), nodes_(hash_seed) {}

    // A location has an address, or a name and perhaps a file and line.
    wire::Id location(const wire::Location& location);
    wire::Id stack(wire::Id parent, wire::Id location);

    // All entries of the epoch, by id.
    [[nodiscard]] std::vector<wire::Location> all_locations() const;
    [[nodiscard]] std::vector<wire::StackNode> all_stacks() const;
    // Memory size, without that of names, which are few.
    [[nodiscard]] std::size_t bytes() const { return addresses_.bytes() + nodes_.bytes(); }

private:
    // Most locations are addresses, so their keys have no space for a name.
    struct AddressKey {
        std::uint64_t address = 0;
        wire::Id module = 0;
        std::uint32_t flags = 0;
        bool operator==(const AddressKey&) const = default;
        [[nodiscard]] std::uint64_t hash(std::uint64_t seed) const {
            return mix_in(mix_in(seed, address), std::uint64_t{module} << 32 | flags);
        }
    };
    struct NameKey {
        wire::Id name = 0, module = 0, file = 0;
        std::uint32_t line = 0, flags = 0;
        bool operator==(const NameKey&) const = default;
        [[nodiscard]] std::uint64_t hash(std::uint64_t seed) const {
            return mix_in(mix_in(seed, std::uint64_t{name} << 32 | module),
                          std::uint64_t{line} << 32 | (file << 8 ^ flags));
        }
    };
    struct NodeKey : wire::StackNode {
        [[nodiscard]] std::uint64_t hash(std::uint64_t seed) const {
            return mix_in(seed, std::uint64_t{parent} << 32 | location);
        }
    };

    IdTable<AddressKey> addresses_;
    IdTable<NameKey> names_;
    IdTable<NodeKey> nodes_;
};

}  // namespace flamewire::recording
