// All perf events and rings of one recording: opens them on the targets, drains the rings in time order, and reports
// losses.
//
// Each CPU has one sample ring and one small sideband ring (mmap2, comm, task), each owned by a dummy event of our own.
// Every event is redirected into them. For processes, each (thread x CPU) has events, which children inherit. A thread
// that was both opened and inherited is counted once (owners, see owners.h). The whole system and control groups use
// events of CPUs. Processes use them too if their threads would need too many events, or may not have their own.
//
// Not thread-safe: the thread that opens the set owns it and must outlive it (the rings' owners are events on that
// thread).
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

// Instead of processes: all that runs on some CPUs, or all that runs there in some control groups.
struct Scope {
    bool wide = false;
    std::vector<std::uint32_t> cpus = {};        // ascending; empty: all that are online
    std::vector<std::string> cgroups = {};       // folders, none inside another; empty: all tasks
    wire::StackMode mode = wire::StackMode::fp;  // of all samples
    bool operator==(const Scope&) const = default;
};

// Opens the folders of the control groups. Errors have an errno, and the message contains the folder's name.
Result<bool> open_cgroups(const Scope& scope, std::vector<UniqueFd>& folders);

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

// The kernel's own numbers, for accounting. All since open().
struct EventSetCounts {
    std::uint64_t samples_read = 0;       // sample records of the target read from rings, including duplicates
    std::uint64_t samples_duplicate = 0;  // dropped by owner: samples_read - samples_duplicate went to the sink
    std::uint64_t samples_lost = 0;       // sum of PERF_FORMAT_LOST if the kernel has it, else of LOST records
    std::uint64_t late_records = 0;
    std::uint64_t ring_bytes = 0;
    std::uint64_t discarded_stack_bytes = 0;  // stack copies in samples of other processes
};

class EventSet {
public:
    // permission, not_found or busy, with a sentence and a remedy. not_found if a pid does not exist. unsupported if
    // this kernel or CPU lacks a mode.
    static Result<std::unique_ptr<EventSet>> open(const EventSetOptions& options, const Capabilities& capabilities,
                                                  const Kernel& kernel = real_kernel());
    virtual ~EventSet() = default;

    // Turns sampling on and off. Process and map records continue, so that addresses resolve after a pause.
    virtual Result<bool> enable() = 0;
    virtual Result<bool> disable() = 0;

    // Waits for a watermark or `timeout`, whichever comes first; also wakes when `wake_fd` (>= 0) is readable. Rings
    // are sized for 100 ms.
    virtual void wait(std::chrono::milliseconds timeout, int wake_fd) = 0;
    // Delivers the records that are ready and not newer than `until_ns`, merged by time over all rings.
    virtual void drain(RecordSink& sink, std::uint64_t until_ns) = 0;
    // Delivers everything that is left (call disable() first), and LostRecords for losses that PERF_FORMAT_LOST counts
    // beyond the LOST records. Afterwards the sum of all LostRecords equals the kernel's own count.
    virtual void drain_rest(RecordSink& sink) = 0;

    [[nodiscard]] virtual EventSetCounts counts() = 0;
    // True if no thread of any target is left (from EXIT records and /proc); their children may still run. For control
    // groups: if all folders are gone. Always false for the whole system. Updated by drain().
    [[nodiscard]] virtual bool targets_gone() const = 0;
    // Notices that arose after opening (rings halved, threads skipped).
    virtual std::vector<wire::Notice> take_notices() = 0;

    // True for events of whole CPUs: all threads are sampled, however short-lived they are.
    [[nodiscard]] virtual bool samples_whole_cpus() const = 0;
    // Call it right after a drain. Empty if too few threads have exited to matter.
    virtual std::vector<Unsampled> take_unsampled(std::uint64_t now_ns) = 0;
    // Adds processes of the target that were born while this set was opened.
    virtual void follow(const std::set<std::uint32_t>& pids) = 0;
};

}  // namespace flamewire::agent
