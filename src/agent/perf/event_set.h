// All perf events and rings of one recording: opens them on the targets, drains the rings in time order, tells what was
// lost. DESIGN in one paragraph: on each CPU one sample ring and one small sideband ring (mmap2, comm, task), each
// owned by a dummy event of our own; every event is redirected into them. Of processes each (thread x CPU) has events,
// inherited by children; a thread that was opened and inherited both is counted once (owners, see owners.h). The whole
// system and control groups have events of CPUs, and so have processes where their threads would need too many, or may
// not have their own. Not thread-safe: the thread that opens it owns it and must outlive it (the rings' owners are
// events on that thread).
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "agent/perf/capabilities.h"
#include "agent/perf/event_spec.h"
#include "agent/perf/record.h"
#include "agent/perf/unsampled.h"
#include "base/fd.h"
#include "base/result.h"
#include "wire/batch.h"

namespace flamewire::agent {

inline constexpr std::uint32_t default_stack_bytes = 16'384, highest_stack_bytes = 65'528;

// A process with all its threads, and children born later: they inherit events and mode.
struct Target {
    std::uint32_t pid = 0;
    wire::StackMode mode = wire::StackMode::fp;
};

// Not some processes, but all that runs on some CPUs, or all that runs there in some control groups.
struct Scope {
    bool wide = false;
    std::vector<std::uint32_t> cpus = {};        // ascending; empty: all that are online
    std::vector<std::string> cgroups = {};       // folders, none inside of another; empty: whoever runs
    wire::StackMode mode = wire::StackMode::fp;  // of all samples
    bool operator==(const Scope&) const = default;
};

// Opens the folders of the control groups. An errno in the error, and the folder's name in the sentence.
Result<bool> open_cgroups(const Scope& scope, std::vector<UniqueFd>& folders);

struct EventSetOptions {
    EventChoice choice = {};  // without events: only the records of processes and maps
    std::vector<Target> targets = {};
    Scope scope = {};                                 // wide: instead of targets
    std::uint32_t stack_bytes = default_stack_bytes;  // copied with a sample in dwarf mode; a multiple of 8
    std::uint32_t hybrid_stack_bytes = 2'048;         // the same in hybrid mode
    bool copy_at_switches = true;                     // false: samples of context switches as in fp mode
    bool sample_stack_pointer = false;  // fp samples carry the registers sp and pc (where the kernel has them)
    std::uint32_t max_depth = 0;        // a person asked for so many frames; 0: nobody did
    bool enable_on_exec = false;        // start counting when the (single) target calls exec
    bool start_disabled = false;        // enable() starts it
    std::uint32_t ring_pages = 0;       // of a sample ring; 0: by frequency and memory limits
    bool force_one_page = false;        // tests: smallest rings
    bool prefer_whole_cpus = false;     // sample the targets by events of whole CPUs, if permitted
};

// Kernel's own numbers, for accounting. All since open().
struct EventSetCounts {
    std::uint64_t samples_read = 0;  // sample records of the target taken from rings, duplicates included
    std::uint64_t samples_duplicate =
        0;                           // of these, left out by owner: samples_read - samples_duplicate went to the sink
    std::uint64_t samples_lost = 0;  // PERF_FORMAT_LOST over all events where the kernel has it, else of LOST records
    std::uint64_t late_records = 0;
    std::uint64_t ring_bytes = 0;
    std::uint64_t discarded_stack_bytes = 0;  // copies in samples of other processes
};

class EventSet {
public:
    // permission / not_found / busy with a sentence and remedy. A pid that is gone: not_found. A mode that this kernel
    // or CPU has not: unsupported.
    static Result<std::unique_ptr<EventSet>> open(const EventSetOptions& options, const Capabilities& capabilities,
                                                  const Kernel& kernel = real_kernel());
    virtual ~EventSet() = default;

    // Sampling on and off. Process and map records keep coming, so that addresses resolve after a pause.
    virtual Result<bool> enable() = 0;
    virtual Result<bool> disable() = 0;

    // Waits for a watermark or `timeout`, whichever comes first; also wakes when `wake_fd` (>= 0) is readable. Rings
    // are sized for 100 ms.
    virtual void wait(std::chrono::milliseconds timeout, int wake_fd) = 0;
    // Hands out, merged by time over all rings, what is ready now and not newer than `until_ns`.
    virtual void drain(RecordSink& sink, std::uint64_t until_ns) = 0;
    // Everything that is left (disable() first), and LostRecords for what PERF_FORMAT_LOST knows beyond the LOST
    // records: after it the sum of all LostRecords is the kernel's own count.
    virtual void drain_rest(RecordSink& sink) = 0;

    // Index into EventSetOptions::choice.events of a sample's id.
    [[nodiscard]] virtual std::uint32_t event_of(std::uint64_t id) const = 0;
    [[nodiscard]] virtual EventSetCounts counts() = 0;
    // True when no thread of any target is left (by EXIT records and /proc); their children may live on. Of control
    // groups: when all folders are gone. Never of the whole system. Known after a drain().
    [[nodiscard]] virtual bool targets_gone() const = 0;
    // Things worth saying that came up after opening (rings halved, threads skipped).
    virtual std::vector<wire::Notice> take_notices() = 0;

    // Events of whole CPUs: all threads are sampled, however short they live.
    [[nodiscard]] virtual bool samples_whole_cpus() const = 0;
    // Call it right after a drain. Empty if too few threads have exited to matter.
    virtual std::vector<Unsampled> take_unsampled(std::uint64_t now_ns) = 0;
    // Processes of the target that were born while this set was opened.
    virtual void follow(const std::set<std::uint32_t>& pids) = 0;
};

}  // namespace flamewire::agent
