// What an event set samples, and how.
#pragma once

#include <cstdint>
#include <vector>

#include "agent/perf/capabilities.h"
#include "agent/perf/scope.h"
#include "wire/batch.h"

namespace flamewire::agent {

inline constexpr std::uint32_t default_stack_bytes = 16'384, highest_stack_bytes = 65'528;

// A process with all its threads, and children born later: they inherit events and mode.
struct Target {
    std::uint32_t pid = 0;
    wire::StackMode mode = wire::StackMode::fp;
    std::uint32_t origin = 0;  // the process whose fork began it, so that it has the same breakpoints; 0: itself
    [[nodiscard]] std::uint32_t breakpoints_of() const { return origin != 0 ? origin : pid; }
};

// Called again and again while many threads are opened, so that the rings of the set in use do not overflow meanwhile.
class OpeningObserver {
public:
    virtual void while_opening() = 0;

protected:
    ~OpeningObserver() = default;
};

struct EventSetOptions {
    EventChoice choice = {};  // without events: only process and map records
    std::vector<Target> targets = {};
    Scope scope = {};                                 // wide: instead of targets
    std::uint32_t stack_bytes = default_stack_bytes;  // copied with a sample in dwarf mode; a multiple of 8
    std::uint32_t hybrid_stack_bytes = 2'048;         // the same in hybrid mode
    bool copy_at_switches = true;                     // false: context switches are sampled as in fp mode
    // A process may be in the wrong mode: fp samples carry sp and pc (if the kernel has them), dwarf samples the user's
    // call chain.
    bool automatic_modes = false;
    std::uint32_t max_depth = 0;     // number of frames that the user requested; 0: none
    bool enable_on_exec = false;     // start counting when the (single) target calls exec
    bool start_disabled = false;     // enable() starts it
    std::uint32_t ring_pages = 0;    // of a sample ring; 0: from frequency and memory limits
    bool force_one_page = false;     // tests: smallest rings
    bool prefer_whole_cpus = false;  // sample the targets with events of whole CPUs, if permitted
    OpeningObserver* observer = nullptr;
};

}  // namespace flamewire::agent
