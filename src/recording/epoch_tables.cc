#include "recording/epoch_tables.h"

namespace flamewire::recording {

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
