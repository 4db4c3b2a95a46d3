// The common part of both kinds of EventSet: events whose records go into shared rings, one pair per CPU. Opening is in
// ring_event_set.cc, reading in event_set_drain.cc. Derived classes decide what to open events for and which samples
// count: ThreadEventSet for threads, CpuEventSet for whole CPUs and control groups.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "agent/perf/attr.h"
#include "agent/perf/decode.h"
#include "agent/perf/event_set.h"
#include "agent/perf/merge.h"
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

class RingEventSet : public EventSet {
public:
    ~RingEventSet() override;
    RingEventSet(const RingEventSet&) = delete;
    RingEventSet& operator=(const RingEventSet&) = delete;

    Result<bool> enable() override { return set_sampling(true); }
    Result<bool> disable() override { return set_sampling(false); }
    void wait(std::chrono::milliseconds timeout, int wake_fd) override { rings_->wait(timeout, wake_fd); }
    void drain(RecordSink& sink, std::uint64_t until_ns) override;
    void drain_rest(RecordSink& sink) override;
    [[nodiscard]] EventSetCounts counts() override;
    [[nodiscard]] bool targets_gone() const override { return gone_; }
    std::vector<wire::Notice> take_notices() override { return std::exchange(notices_, {}); }
    [[nodiscard]] bool samples_whole_cpus() const override { return whole_cpus_; }
    void follow(const std::set<std::uint32_t>&) override {}

protected:
    // What an event is opened for.
    struct Subject {
        pid_t tid = -1;        // a thread; -1: all tasks
        int cgroup = -1;       // an open folder: the tasks in this control group
        bool wakings = false;  // an additional event for wake-ups only
    };
    enum class Classification { counts, duplicate, out_of_scope };

    RingEventSet(const EventSetOptions& options, const Capabilities& capabilities, const Kernel& kernel)
        : options_(options),
          capabilities_(capabilities),
          kernel_(kernel),
          sampling_(!options.start_disabled && !options.enable_on_exec),
          exec_awaited_(options.enable_on_exec) {}

    // unsupported, with a sentence, if one of the modes does not work here. Adds notices for restrictions.
    Result<bool> check_modes(std::span<const wire::StackMode> modes);
    Result<bool> open_rings(std::span<const std::uint32_t> cpus, std::span<const wire::StackMode> modes);
    // Opens all parts of all events on that CPU; returns an errno, 0 on success. `set` as in OpenEvent.
    int open_samples(const Subject& subject, wire::StackMode mode, std::uint32_t cpu_index, std::uint32_t set);
    int open_sideband(const Subject& subject, std::uint32_t cpu_index);
    // Call it before open_samples(). If wake-ups are wanted and the subsequent events are not for whole CPUs
    // (`beside`), opens additional events for them, because any thread may wake the target's threads. They copy no user
    // stacks. If they cannot be opened, adds a notice and continues.
    void prepare_wakings(bool beside);
    void notify(std::string code, std::string text, std::string remedy = {});
    [[nodiscard]] std::span<const OpenEvent> samples() const { return samples_; }
    [[nodiscard]] std::uint64_t drained_ns() const { return drained_ns_; }

    // Called for each sample, …
    virtual Classification classify(const SampleRecord& sample, const OpenEvent& event) = 0;
    // … for each switch: whether it counts, …
    virtual bool counts_switch(const SwitchRecord& change, const OpenEvent& event) = 0;
    // … for each other record except losses and throttles: false if it must not be delivered, …
    virtual bool on_sideband(const MergedRecord& merged, const Record& record, const perf::Origin& origin) = 0;
    // … if some of these were lost, …
    virtual void on_sideband_lost() = 0;
    // … after each round of reading, …
    virtual void after_round() {}
    // … and about once per second, and after an exit that requests it (check_soon_): whether the targets are gone.
    [[nodiscard]] virtual bool poll_targets() = 0;

    EventSetOptions options_;
    Capabilities capabilities_;
    Kernel kernel_;
    bool sampling_;      // the current state, from enable(), disable() or exec
    bool exec_awaited_;  // the target's exec will turn sampling on
    bool check_soon_ = false;
    bool several_sets_ = false;  // a thread may have more than one
    bool whole_cpus_ = false;
    std::unique_ptr<RingSet> rings_;
    Record record_;

private:
    [[nodiscard]] SampleLayout layout_of(wire::StackMode mode, const EventSpec& spec, const EventPart& part) const;
    [[nodiscard]] RingDemand ring_demand(std::span<const wire::StackMode> modes) const;
    int open_event(perf_event_attr attr, const Subject& subject, std::size_t ring, OpenEvent& out);
    int open_sample(std::uint32_t event, const EventPart& part, const Subject& subject, wire::StackMode mode,
                    std::uint32_t cpu_index, std::uint32_t set);
    Result<bool> set_sampling(bool on);
    Result<bool> apply_sampling();

    void deliver(RecordSink& sink, std::uint64_t limit_ns);
    void deliver(const MergedRecord& merged, RecordSink& sink);
    // A record, and the event that wrote it. If the event is null, it is not ours, or is one for process and map records.
    struct Delivery {
        const MergedRecord& merged;
        perf::Origin origin = {};
        OpenEvent* event = nullptr;
        bool is_copy = false;  // of a sample, see writer_of()
    };
    // False if the record must not be delivered.
    bool accept(SampleRecord& sample, const Delivery& delivery);
    bool accept(const SwitchRecord& change, const Delivery& delivery);
    bool accept(LostRecord& lost, const Delivery& delivery);
    bool accept(const ThrottleRecord&, const Delivery&) { return true; }
    template <class Side>
    bool accept(const Side&, const Delivery& delivery) {
        return on_sideband(delivery.merged, record_, delivery.origin);
    }
    void check_targets();
    void link_alike(std::size_t first);
    void no_wakings();
    OpenEvent* find(std::uint64_t id);
    OpenEvent* writer_of(Bytes sample, bool& is_copy);
    std::uint64_t read_lost(const OpenEvent& event) const;
    void report_remaining_loss(const std::vector<OpenEvent>& events, bool sideband, RecordSink& sink);

    std::uint64_t apply_until_ns_ = 0;
    std::uint64_t drained_ns_ = 0;  // samples up to this time were delivered
    std::vector<OpenEvent> samples_, sideband_;
    std::unordered_map<std::uint64_t, std::uint32_t> by_id_;  // into samples_
    std::uint64_t last_id_ = 0;                               // the id that find() found last, …
    std::uint32_t last_index_ = 0;                            // … and its index

    Merge merge_;
    EventSetCounts counts_;
    std::vector<std::uint64_t> lost_records_;  // per ring, the sum of its LOST records
    std::uint64_t lost_seen_ = 0, lost_read_at_ = 0;
    std::uint64_t broken_ = 0;
    bool gone_ = false;
    std::uint64_t next_gone_check_ns_ = 0;
    std::vector<wire::Notice> notices_;
    std::vector<std::string> notified_;  // codes of all notices, including those that were taken
};

}  // namespace flamewire::agent
