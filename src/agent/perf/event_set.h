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
#include <utility>
#include <variant>
#include <vector>

#include "agent/perf/cpu_targets.h"
#include "agent/perf/merge.h"
#include "agent/perf/ring_events.h"
#include "agent/perf/thread_targets.h"

namespace flamewire::agent {

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
    EventSet(const EventSet&) = delete;
    EventSet& operator=(const EventSet&) = delete;

    // Turns sampling on and off. Process and map records continue, so that addresses resolve after a pause.
    Result<bool> enable() { return events_.set_sampling(true); }
    Result<bool> disable() { return events_.set_sampling(false); }

    // Waits for a watermark or `timeout`, whichever comes first; also wakes when `wake_fd` (>= 0) is readable. Rings
    // are sized for 100 ms.
    void wait(std::chrono::milliseconds timeout, int wake_fd) { events_.rings().wait(timeout, wake_fd); }
    // Delivers the records that are ready and not newer than `until_ns`, merged by time over all rings.
    void drain(RecordSink& sink, std::uint64_t until_ns);
    // Delivers everything that is left (call disable() first), and LostRecords for losses that PERF_FORMAT_LOST counts
    // beyond the LOST records. Afterwards the sum of all LostRecords equals the kernel's own count.
    void drain_rest(RecordSink& sink);

    [[nodiscard]] EventSetCounts counts();
    // True if no thread of any target is left (from EXIT records and /proc); their children may still run. For control
    // groups: if all folders are gone. Always false for the whole system. Updated by drain().
    [[nodiscard]] bool targets_gone() const { return gone_; }
    // Notices that arose after opening (rings halved, threads skipped).
    std::vector<wire::Notice> take_notices() { return events_.take_notices(); }

    // True for events of whole CPUs: all threads are sampled, however short-lived they are.
    [[nodiscard]] bool samples_whole_cpus() const { return events_.whole_cpus(); }
    // Call it right after a drain. Empty if too few threads have exited to matter.
    std::vector<Unsampled> take_unsampled(std::uint64_t now_ns);
    // The errno that prevented sampling some of the targets' threads; 0: all are sampled.
    [[nodiscard]] int lacking() const;
    // Before another set is opened that needs the same breakpoints; false: there are none.
    bool close_breakpoints() { return events_.close_breakpoints(); }
    // Adds processes of the target that were born while this set was opened.
    void follow(const std::set<std::uint32_t>& pids);

private:
    template <class Targets>
    EventSet(std::in_place_type_t<Targets> kind, const EventSetOptions& options, const Capabilities& capabilities,
             const Kernel& kernel);
    template <class Targets>
    static Result<std::unique_ptr<EventSet>> open_as(const EventSetOptions& options, const Capabilities& capabilities,
                                                     const Kernel& kernel);

    // A record, and the event that wrote it; null: not ours, or one for process and map records.
    struct Delivery {
        const MergedRecord& merged;
        std::uint64_t id = 0;  // of the event that wrote the record
        OpenEvent* event = nullptr;
        bool is_copy = false;  // of a sample, see RingEvents::writer_of()
    };
    void deliver(RecordSink& sink, std::uint64_t limit_ns);
    void deliver(const MergedRecord& merged, RecordSink& sink);
    // False if the record must not be delivered.
    bool accept(SampleRecord& sample, const Delivery& delivery);
    bool accept(const SwitchRecord& change, const Delivery& delivery);
    bool accept(LostRecord& lost, const Delivery& delivery);
    bool accept(const ThrottleRecord&, const Delivery&) { return true; }
    template <class Sideband>
    bool accept(const Sideband& record, const Delivery& delivery);
    void check_targets();
    [[nodiscard]] std::uint64_t read_lost(const OpenEvent& event) const;
    void report_remaining_loss(const std::vector<OpenEvent>& events, bool sideband, RecordSink& sink);

    RingEvents events_;
    std::variant<ThreadTargets, CpuTargets> targets_;
    Record record_;
    Merge merge_;
    EventSetCounts counts_;
    std::uint64_t drained_ns_ = 0;             // samples up to this time were delivered
    std::vector<std::uint64_t> lost_records_;  // per ring, the sum of its LOST records
    std::uint64_t lost_seen_ = 0, lost_read_at_ = 0;
    std::uint64_t broken_ = 0;
    bool gone_ = false;
    std::uint64_t next_gone_check_ns_ = 0;
};

}  // namespace flamewire::agent
