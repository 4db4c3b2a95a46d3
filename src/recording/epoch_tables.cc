#include "recording/epoch_tables.h"

namespace flamewire::recording {

std::size_t EpochTables::unsent_count() const {
    return strings.unsent_count() + modules.unsent_count() + locations.unsent_count() + stacks.unsent_count() +
           processes.unsent_count() + threads.unsent_count();
}

void EpochTables::flush(wire::Batch& batch) {
    strings.flush(batch.string_base, batch.strings);
    modules.flush(batch.module_base, batch.modules);
    locations.flush(batch.location_base, batch.locations);
    stacks.flush(batch.stack_base, batch.stacks);
    processes.flush(batch.process_base, batch.processes);
    threads.flush(batch.thread_base, batch.threads);
    events.flush(batch.event_base, batch.events);
}

}  // namespace flamewire::recording
