// Places the probes of a recording: finds their files and functions, chooses the instructions, and creates the
// tracepoints. The kernel itself finds its functions.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/perf/event_spec.h"
#include "agent/probes/probe_files.h"
#include "agent/probes/probe_instruction.h"
#include "agent/probes/tracefs_events.h"
#include "base/result.h"

namespace flamewire::agent {

// One instruction with a probe.
struct PlacedProbe {
    std::string event;             // EventSpec::name
    std::string file;              // as the process sees it
    std::uint64_t offset = 0;      // in the file, bytes
    bool emulated = false;         // by the kernel, as far as known
    std::uint64_t tracepoint = 0;  // perf_event_attr.config
};

struct PlacedProbes {
    std::vector<PlacedProbe> places;  // of probes in user code
    // Removes the tracepoints with its last owner. Close the perf events before.
    std::shared_ptr<const TracefsEvents> events;  // null: there are no probes
};

// A new group in tracefs. Errors: not_found, if it is not mounted; permission.
Result<std::shared_ptr<TracefsEvents>> new_tracefs_group(const Sysfs& sysfs);
// Creates the probe, and adds it as a part of `spec`.
Result<bool> create_probe(TracefsEvents& events, const ProbeDefinition& definition, const Sysfs& sysfs,
                          EventSpec& spec);

class ProbePlacer {
public:
    // `target` and `sysfs` must outlive this. `emulated`: by this kernel; nullopt: not measured.
    ProbePlacer(const ProbeTarget& target, const Sysfs& sysfs, std::optional<InstructionClasses> emulated)
        : target_(target), sysfs_(sysfs), emulated_(emulated) {}

    // Adds the parts of all probes in `specs`. A pattern becomes one event for each function or USDT probe. On an error,
    // nothing stays in tracefs. Errors: not_found (file, function or USDT probe), invalid (an ambiguous name, or the
    // kernel refuses the probe), unsupported, permission, too_large (a pattern with too many functions).
    Result<bool> place(std::vector<EventSpec>& specs);

    [[nodiscard]] PlacedProbes take() { return {std::move(places_), std::move(events_)}; }

private:
    Result<std::vector<EventSpec>> place_one(const EventSpec& spec);
    Result<std::vector<EventSpec>> place_in_kernel(const EventSpec& spec);

    const ProbeTarget& target_;
    const Sysfs& sysfs_;
    const std::optional<InstructionClasses> emulated_;
    std::shared_ptr<TracefsEvents> events_;
    std::vector<PlacedProbe> places_;
};

}  // namespace flamewire::agent
