#include "views/sql/tables.h"

#include <algorithm>

namespace flamewire::views::sql {

std::span<const Table> tables() {
    static const std::vector<Table> all = [] {
        std::vector<Table> list;
        for (auto* const part : {&sample_tables, &name_tables, &hit_tables, &recording_tables})
            for (Table& one : part()) list.push_back(std::move(one));
        std::ranges::sort(list, {}, &Table::name);
        return list;
    }();
    return all;
}

}  // namespace flamewire::views::sql
