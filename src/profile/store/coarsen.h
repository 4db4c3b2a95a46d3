// Keeps a row table within its limit. The oldest rows lose detail in steps, and rows are dropped only if they have no
// detail left to lose. Detail fades with age: the level that holds the most rows is coarsened first, so all levels have
// about equally many rows, and coarser levels cover more time. Sums over whole coarse buckets stay exact.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>

#include "profile/store/rows.h"

namespace flamewire::profile {

// The detail that a chunk of a level has lost, compared with how it arrived (level 0).
struct CoarseLevel {
    std::uint64_t bucket_ns = 0;  // minimum bucket width
    bool cpu_folded = false;      // all CPUs are merged into one
    bool thread_folded = false;   // all threads of a process are merged into one
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

// The newest rows / this many stay as they arrived, as long as older rows can be coarsened.
inline constexpr std::size_t protected_share = 4;

struct CoarsenHooks {
    std::function<ThreadId(ThreadId)> fold_thread;  // returns the thread that stands for all threads of its process
    std::function<void(const RowChunk&)> coarsened,
        dropped;  // called once for each chunk that leaves level 0, or the table
};

// Rows per chunk for tables of at most `max_rows`: few enough that detail is lost gradually.
std::size_t chunk_rows_for(std::size_t max_rows);

// Coarsens and drops rows until at most `max_rows` are left. Starts to coarsen at 15/16 of the limit, a little in each
// call.
void enforce_row_limit(RowTable& rows, std::size_t max_rows, const CoarsenHooks& hooks);

}  // namespace flamewire::profile
