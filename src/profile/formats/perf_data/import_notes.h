// Notes of an imported perf.data file: which parts are damaged, and what it has that Flamewire does not show.
#pragma once

#include <cstdint>
#include <map>

#include "profile/formats/perf_data/header.h"
#include "profile/formats/perf_data/modules.h"
#include "profile/formats/perf_data/perf_maps.h"
#include "profile/formats/perf_data/record_reader.h"
#include "profile/formats/perf_data/stacks.h"
#include "profile/formats/recording_builder.h"

namespace flamewire::profile::perf_data {

struct ImportCounts {
    std::uint64_t broken_samples = 0, unknown_ids = 0;
    std::uint64_t raw_samples = 0, branch_samples = 0, guest_maps = 0;
    std::map<std::uint32_t, std::uint64_t> other_types;  // records that the import does not use
    bool kernel_base_missing = false;
};

void write_notes(RecordingBuilder& builder, const Header& header, const RecordReader& reader,
                 const Stacks::Counts& stacks, const Modules& modules, const ImportCounts& counts);

// Adds notes about JIT code: which processes have a perf map for it and which do not.
void note_perf_maps(RecordingBuilder& builder, const PerfMaps& maps);

}  // namespace flamewire::profile::perf_data
