// What both kinds of EventSet share: events whose records go into rings that they have in common, one pair a CPU. Opening
// is in ring_event_set.cc, reading in event_set_drain.cc. What an event is opened for, and which samples count, is the
// heirs' to say: ThreadEventSet for threads, CpuEventSet for whole CPUs and control groups.
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

// One event on one CPU, of a thread or of all that run there.
struct OpenEvent {
    int fd = -1;
    std::uint64_t id = 0;
    std::uint32_t event = 0;                 // index of the spec; unused for sideband
    std::uint32_t slot = 0;                  // (event, CPU), see owners.h
    std::uint32_t set = 0;                   // the thread it was opened for, counted from 0
    bool of_cpu = false;                     // SampleRecord::of_cpu
    std::uint64_t sampled = 0, samples = 0;  // weight and number of its samples, duplicates included
    std::uint32_t cpu_index = 0;
    SampleLayout layout = {};
    // For twins, see writer_of(). A software event that is no clock; the next that counts the same in this set on this
    // CPU, in a circle, itself when it is alone:
    bool shares_ids = false;
    std::uint32_t next_alike = 0;
    std::uint32_t last_tid = 0;  // of its last sample …
    std::uint64_t last_ns = 0;   // … and its time, as the kernel wrote it, …
    std::uint32_t twins = 0;     // … the samples that came with it, …
    bool last_counted = false;   // … and whether one of all these counts
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
    [[nodiscard]] std::uint32_t event_of(std::uint64_t id) const override {
        const auto found = by_id_.find(id);
        return found != by_id_.end() ? samples_[found->second].event : 0;
    }
    [[nodiscard]] EventSetCounts counts() override;
    [[nodiscard]] bool targets_gone() const override { return gone_; }
    std::vector<wire::Notice> take_notices() override { return std::exchange(notices_, {}); }
    [[nodiscard]] bool samples_whole_cpus() const override { return whole_cpus_; }
    void follow(const std::set<std::uint32_t>&) override {}

protected:
    // Whose event it is.
    struct Subject {
        pid_t tid = -1;        // a thread; -1: whoever runs
        int cgroup = -1;       // a folder that is open: who runs in this control group
        bool wakings = false;  // beside what else is opened, for wake-ups alone
    };
    enum class Verdict { counts, duplicate, not_of_target };

    RingEventSet(const EventSetOptions& options, const Capabilities& capabilities, const Kernel& kernel)
        : options_(options),
          capabilities_(capabilities),
          kernel_(kernel),
          sampling_(!options.start_disabled && !options.enable_on_exec),
          exec_awaited_(options.enable_on_exec) {}

    // unsupported with a sentence when one of the modes does not work here; notices for what is less than asked for.
    Result<bool> check_modes(std::span<const wire::StackMode> modes);
    Result<bool> open_rings(std::span<const std::uint32_t> cpus, std::span<const wire::StackMode> modes);
    // errno, 0 when it worked. All parts of all events on that CPU; `set` as in OpenEvent.
    int open_samples(const Subject& subject, wire::StackMode mode, std::uint32_t cpu_index, std::uint32_t set);
    int open_sideband(const Subject& subject, std::uint32_t cpu_index);
    // Before open_samples(). Where wake-ups are wanted and the events that follow are not of whole CPUs, opens those
    // beside them, as anybody may wake the target's threads; without stacks of users. A notice when they cannot be
    // had; all else goes on.
    void prepare_wakings(bool beside);
    void say(std::string code, std::string text, std::string remedy = {});
    [[nodiscard]] std::span<const OpenEvent> samples() const { return samples_; }
    [[nodiscard]] std::uint64_t drained_ns() const { return drained_ns_; }

    // Of each sample, …
    virtual Verdict judge(const SampleRecord& sample, const OpenEvent& event) = 0;
    // … of each switch: whether it counts, …
    virtual bool judge_switch(const SwitchRecord& change, const OpenEvent& event) = 0;
    // … of each other record but losses and throttles: false when it is not to be handed on, …
    virtual bool on_sideband(const MergedRecord& merged, const Record& record, const RecordOrigin& origin) = 0;
    // … when some of these were lost, …
    virtual void on_sideband_lost() = 0;
    // … after each round of reading, …
    virtual void after_round() {}
    // … and about once a second, and after an exit that asks for it (check_soon_): whether the targets are gone.
    [[nodiscard]] virtual bool look_for_targets() = 0;

    EventSetOptions options_;
    Capabilities capabilities_;
    Kernel kernel_;
    bool sampling_;      // as enable() and disable() said last
    bool exec_awaited_;  // it will turn sampling on
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

    void hand_out(RecordSink& sink, std::uint64_t limit_ns);
    void deliver(const MergedRecord& merged, RecordSink& sink);
    void check_targets();
    void link_alike(std::size_t first);
    void no_wakings();
    OpenEvent* find(std::uint64_t id);
    OpenEvent* writer_of(Bytes sample, bool& twin);
    std::uint64_t read_lost(const OpenEvent& event) const;
    void report_remaining_loss(const std::vector<OpenEvent>& events, bool sideband, RecordSink& sink);

    std::uint64_t apply_until_ns_ = 0;
    std::uint64_t drained_ns_ = 0;  // samples up to this time were handed out
    std::vector<OpenEvent> samples_, sideband_;
    std::unordered_map<std::uint64_t, std::uint32_t> by_id_;  // into samples_
    std::uint64_t last_id_ = 0;                               // the id that find() saw last, …
    std::uint32_t last_index_ = 0;                            // … and its answer

    Merge merge_;
    EventSetCounts counts_;
    std::vector<std::uint64_t> lost_records_;  // of each ring, the sum of its LOST records
    std::uint64_t lost_seen_ = 0, lost_read_at_ = 0;
    std::uint64_t broken_ = 0;
    bool gone_ = false;
    std::uint64_t next_gone_check_ns_ = 0;
    std::vector<wire::Notice> notices_;
    std::vector<std::string> said_;  // codes of all notices, also of those that were taken
};

}  // namespace flamewire::agent
