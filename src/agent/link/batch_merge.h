// Makes batches smaller and reports what that loses: merges two batches, widens time buckets, replaces rows by losses,
// drops tables. Works on pure values.
#pragma once

#include <cstdint>

#include "wire/batch.h"

namespace flamewire::agent {

// Sum of the rows' counts.
std::uint64_t samples_in(const wire::Batch& batch);

// Samples that the batch reports as missing. Excludes losses of samples that are shown (truncated stacks, coarse
// times), throttling, which counts pauses, and unknown thread states, which are times.
std::uint64_t lost_in(const wire::Batch& batch);

// Whether the batch has neither rows nor anything that refers to tables or adds to them. Such a batch can be merged
// with one of any epoch.
bool is_bare(const wire::Batch& batch);

// Whether `newer`, the next batch after `older`, can be merged with it. They must have the same epoch (or one is bare),
// their tables must be contiguous, and the result must stay within half of the limits of a batch.
bool can_merge(const wire::Batch& older, const wire::Batch& newer);

// Merges both: first_seq..seq and contents of both; times, state and end of the newer one. Rows get buckets of
// `bucket_ns`, which must be a multiple of both bucket widths. If that is coarser than one of them, a time_coarsened
// loss counts the affected samples.
wire::Batch merge(wire::Batch older, wire::Batch newer, std::uint32_t bucket_ns);

// Replaces the rows by losses, one per event, with `reason`, the sum of counts, and the first and last time.
void rows_to_losses(wire::Batch& batch, wire::LossReason reason);

// Makes the batch bare: removes the tables and everything that refers to them. Losses keep their count, but not their
// event. The next counter reading then does not continue an earlier one. The batch must not have rows.
void drop_tables(wire::Batch& batch);

}  // namespace flamewire::agent
