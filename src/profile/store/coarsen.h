// Keeps a row table within its limit: the oldest rows lose detail in steps, and only rows that have no detail left to
// lose are dropped. Detail fades with age: the level that holds most rows gives way, so each has about as many, and the
// coarser ones span more time with theirs. Sums over whole coarse buckets stay exact.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>

#include "profile/store/rows.h"

namespace flamewire::profile {

// What a chunk of a level has lost, compared with how it arrived (level 0).
struct CoarseLevel {
    std::uint64_t bucket_ns = 0;  // at least this wide
    bool cpu_folded = false;      // all cpus in one
    bool thread_folded = false;   // all threads of a process in one
};
inline constexpr std::array<CoarseLevel, 8> coarse_levels = {{
    {0, false, false},
    {100'000'000, false, false},
    {1'000'000'000, false, false},
    {10'000'000'000, false, false},
    {10'000'000'000, true, false},
    {10'000'000'000, true, true},
    {100'000'000'000, true, true},
    {1'000'000'000'000, true, true},
}};

// The newest rows / this many stay as they arrived, as long as anything older can give way.
inline constexpr std::size_t protected_share = 4;

struct CoarsenHooks {
    std::function<ThreadId(ThreadId)> fold_thread;  // the thread that stands for all of its process
    std::function<void(const RowChunk&)> coarsened,
        dropped;  // told once of every chunk that leaves level 0, or the table
};

// Rows of a chunk for tables of at most `max_rows`: small enough that giving way is gradual.
std::size_t chunk_rows_for(std::size_t max_rows);

// Until at most `max_rows` rows are left. Begins to coarsen, a little at each call, when 15/16 of them are there.
void enforce_row_limit(RowTable& rows, std::size_t max_rows, const CoarsenHooks& hooks);

}  // namespace flamewire::profile
