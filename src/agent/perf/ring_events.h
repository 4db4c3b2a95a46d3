// The events of an event set, which write into shared rings, one pair per CPU: opens them, turns sampling on and off,
// and finds the event that wrote a record. Most of its many functions are one step of opening an event.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "agent/perf/attr.h"
#include "agent/perf/event_set_options.h"
#include "agent/perf/event_switch.h"
#include "agent/perf/ring_set.h"

namespace flamewire::agent {

// One event on one CPU, for a thread or for all that runs there.
struct OpenEvent {
    int fd = -1;
    std::uint64_t id = 0;
    std::uint32_t event = 0;                 // index of the spec; unused for sideband
    std::uint32_t slot = 0;                  // (event, CPU), see owners.h
    std::uint32_t set = 0;                   // the thread for which it was opened, counted from 0
    bool of_cpu = false;                     // SampleRecord::of_cpu
    bool at_next_instruction = false;        // SampleRecord::at_next_instruction
    std::uint64_t sampled = 0, samples = 0;  // weight and number of its samples, including duplicates
    std::uint32_t cpu_index = 0;
    SampleLayout layout = {};
    // For copies, see writer_of(). True for a software event that is not a clock. next_alike is the next event of this
    // set on this CPU that counts the same, in a circle; if there is no other, the event itself.
    bool shares_ids = false;
    std::uint32_t next_alike = 0;
    std::uint32_t last_tid = 0;           // of its most recent sample, …
    std::uint64_t last_ns = 0;            // … the time of that sample as the kernel wrote it, …
    std::uint32_t same_time_samples = 0;  // … the number of samples that came with it, …
    bool last_counted = false;            // … and whether one of all these counts
};

// Whether a sample is delivered: `duplicate`: another event took it, too; `out_of_scope`: it is not of the target.
enum class Classification { counts, duplicate, out_of_scope };

class RingEvents {
public:
    // What an event is opened for.
    struct Subject {
        pid_t tid = -1;        // a thread; -1: all tasks
        int cgroup = -1;       // an open folder: the tasks in this control group
        bool wakings = false;  // an additional event for wake-ups only
        std::uint32_t breakpoints_of =
            0;  // the process whose breakpoints the thread has; those of others are not opened
    };

    // `whole_cpus`: the events are for all that runs on a CPU.
    RingEvents(const EventSetOptions& options, const Capabilities& capabilities, const Kernel& kernel, bool whole_cpus);
    ~RingEvents();
    RingEvents(const RingEvents&) = delete;
    RingEvents& operator=(const RingEvents&) = delete;

    // unsupported, with a sentence, if one of the modes does not work here. Adds notices for restrictions.
    Result<bool> check_modes(std::span<const wire::StackMode> modes);
    Result<bool> open_rings(std::span<const std::uint32_t> cpus, std::span<const wire::StackMode> modes);
    // The number of the next set of events, all of one thread. Without a call there is one set.
    std::uint32_t begin_set() { return sets_++; }
    // Opens all parts of all events on that CPU; returns an errno, 0 on success. `set` as in OpenEvent.
    int open_samples(const Subject& subject, wire::StackMode mode, std::uint32_t cpu_index, std::uint32_t set);
    int open_sideband(const Subject& subject, std::uint32_t cpu_index);
    // Call it before open_samples(). If wake-ups are wanted and the subsequent events are not for whole CPUs
    // (`beside`), opens additional events for them, because any thread may wake the target's threads. They copy no user
    // stacks. If they cannot be opened, adds a notice and continues.
    void prepare_wakings(bool beside);

    Result<bool> set_sampling(bool on);
    // Call it now and then: children may be born in the old state meanwhile.
    void repeat_sampling();
    // Frees the breakpoints, so that another set can have them; false: there are none. What they wrote can still be read.
    bool close_breakpoints();
    // The exec of the target, which turned sampling on if that was requested.
    void on_exec() { switch_.on_exec(); }
    [[nodiscard]] bool exec_awaited() const { return switch_.exec_awaited; }

    // The event with this id that takes samples; null: none.
    OpenEvent* find(std::uint64_t id);
    // The event that took a sample; null: the record is not a sample, or not of these events.
    OpenEvent* writer_of(Bytes sample, bool& is_copy);

    void notify(std::string code, std::string text, std::string remedy = {});
    std::vector<wire::Notice> take_notices() { return std::exchange(notices_, {}); }

    [[nodiscard]] const EventSetOptions& options() const { return options_; }
    [[nodiscard]] const Capabilities& capabilities() const { return capabilities_; }
    [[nodiscard]] const Kernel& kernel() const { return kernel_; }
    [[nodiscard]] RingSet& rings() const { return *rings_; }
    [[nodiscard]] const std::vector<OpenEvent>& samples() const { return samples_; }
    [[nodiscard]] const std::vector<OpenEvent>& sideband() const { return sideband_; }
    [[nodiscard]] bool whole_cpus() const { return whole_cpus_; }
    // A thread may have more than one set.
    [[nodiscard]] bool several_sets() const { return sets_ > 1; }

private:
    [[nodiscard]] SampleLayout layout_of(wire::StackMode mode, const EventSpec& spec, const EventPart& part) const;
    [[nodiscard]] RingDemand ring_demand(std::span<const wire::StackMode> modes) const;
    int open_event(perf_event_attr attr, const Subject& subject, std::size_t ring, OpenEvent& out);
    int open_sample(std::uint32_t event, const EventPart& part, const Subject& subject, wire::StackMode mode,
                    std::uint32_t cpu_index, std::uint32_t set);
    void link_alike(std::size_t first);
    void no_wakings();
    Result<bool> apply_sampling();

    EventSetOptions options_;
    Capabilities capabilities_;
    Kernel kernel_;
    bool whole_cpus_;
    EventSwitch switch_;
    std::unique_ptr<RingSet> rings_;
    std::uint32_t sets_ = 0;
    std::vector<OpenEvent> samples_, sideband_;
    std::unordered_map<std::uint64_t, std::uint32_t> by_id_;  // into samples_
    std::uint64_t last_id_ = 0;                               // the id that find() found last, …
    std::uint32_t last_index_ = 0;                            // … and its index
    std::vector<wire::Notice> notices_;
    std::vector<std::string> notified_;  // codes of all notices, including those that were taken
};

}  // namespace flamewire::agent
