// Applies a batch to the tables. The whole batch is validated before anything is applied, so a batch from a broken or
// hostile agent changes nothing.
#pragma once

#include "base/result.h"
#include "profile/store/tables.h"

namespace flamewire::profile {

// `maps`: those of the batch's epoch.
Result<bool> validate(const Store::Tables& tables, const wire::Batch& batch, const EpochMaps& maps);
// The batch must be valid in the current epoch. Returns whether anything changed.
bool apply_batch(Store::Tables& tables, const wire::Batch& batch);
// What a full store does with a batch.
void count_only(Store::Tables& tables, const wire::Batch& batch);

}  // namespace flamewire::profile
