// The virtual tables of a profile. To add one, declare its columns with table() and add it to tables().
#pragma once

#include <span>

#include "views/sql/table.h"

namespace flamewire::views::sql {

// Sorted by name.
std::span<const Table> tables();

// The tables of each file.
std::vector<Table> sample_tables();     // samples, stacks, frames
std::vector<Table> name_tables();       // events, functions, modules, processes, threads
std::vector<Table> hit_tables();        // hits, hit_values
std::vector<Table> recording_tables();  // counters, coverage, info, losses, marks, notices, thread_states, warnings

}  // namespace flamewire::views::sql
