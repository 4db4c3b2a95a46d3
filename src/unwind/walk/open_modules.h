// The modules with open tables. A module is opened when a rule is first needed, and closed when others need the memory
// or the file descriptors. The least recently used one is closed first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "unwind/tables/code_map.h"
#include "unwind/tables/module_tables.h"
#include "unwind/tables/page_cache.h"
#include "unwind/walk/unwinder.h"

namespace flamewire::unwind {

class OpenModules {
public:
    // Pages and indexes together stay below `memory_bytes`, except that the index of a single module can be larger.
    OpenModules(ModuleFiles& files, OpenTables open_tables, std::size_t memory_bytes, TableWork& work);

    // nullptr if the module has no tables; failures to open are cached. Valid until the next call of open().
    ModuleTables* open(ModuleId module);
    // nullptr also if it is not open now.
    ModuleTables* find(ModuleId module);
    // Call after `module` may have built an index. Makes room for it.
    void account(ModuleId module);
    void forget(ModuleId module);
    [[nodiscard]] std::size_t memory_bytes() const;

private:
    struct Slot {
        ModuleId id = 0;
        std::uint64_t used = 0;
        std::size_t bytes = 0;
        std::unique_ptr<ModuleTables> tables;  // null: could not be opened
    };
    using Slots = std::vector<Slot>;

    Slots::iterator place_of(ModuleId module);
    Slot* slot_of(ModuleId module);
    // Closes the least recently used module other than `except`. Returns false if there is none.
    bool evict(ModuleId except, bool open_ones_only);
    void close(Slots::iterator slot);

    ModuleFiles& files_;
    OpenTables open_tables_;
    TableWork& work_;
    std::size_t limit_bytes_, page_limit_;
    PageCache pages_;
    Slots slots_;  // by id
    std::size_t open_ = 0, index_bytes_ = 0;
    std::uint64_t clock_ = 0;
};

}  // namespace flamewire::unwind
