// How batches become smaller without lying: two into one, rows into wider time buckets, rows into a stated loss, tables
// away. Pure values.
#pragma once

#include <cstdint>

#include "wire/batch.h"

namespace flamewire::agent {

// Sum of the rows' counts.
std::uint64_t samples_in(const wire::Batch& batch);

// Samples that the batch states as missing. Losses about samples that are shown (cut stacks, coarse times) or that
// count no samples (pauses) are not in it.
std::uint64_t lost_in(const wire::Batch& batch);

// Neither rows nor anything that refers to tables or adds to them: it may join a batch of any epoch.
bool is_bare(const wire::Batch& batch);

// Whether `newer`, the next batch after `older`, can be merged with it: one epoch (or one of them bare), tables that
// continue, and a result within half of what a batch may carry.
bool can_merge(const wire::Batch& older, const wire::Batch& newer);

// Both in one: first_seq..seq of both, everything of both; the newer one's times, state and end. Rows are in buckets of
// `bucket_ns`, a multiple of the width of both; when that is coarser than one of them was, a time_coarsened loss says
// how many samples it concerns.
wire::Batch merge(wire::Batch older, wire::Batch newer, std::uint32_t bucket_ns);

// The rows become losses, one an event: `reason`, sum of counts, first and last time.
void rows_to_losses(wire::Batch& batch, wire::LossReason reason);

// Makes it bare: tables go, and what refers to them (losses keep their count but not their event; the next reading of
// counters begins where none ended). The rows must be gone.
void drop_tables(wire::Batch& batch);

}  // namespace flamewire::agent
