// The one kind of EventSet: (thread x CPU) events of all targets, in rings that they share. Opening is in event_set.cc,
// reading in event_set_drain.cc.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "agent/perf/attr.h"
#include "agent/perf/decode.h"
#include "agent/perf/event_set.h"
#include "agent/perf/merge.h"
#include "agent/perf/owners.h"
#include "agent/perf/ring_set.h"

namespace flamewire::agent {

struct Watched {
    Target target;
    std::uint64_t start_ticks = 0;
};

// One event on one (thread, CPU).
struct OpenEvent {
    int fd = -1;
    std::uint64_t id = 0;
    std::uint32_t event = 0;  // index of the spec; unused for sideband
    std::uint32_t slot = 0;   // (event, CPU), see owners.h
    std::uint32_t set = 0;    // the thread it was opened for, counted from 0
    std::uint32_t cpu_index = 0;
    SampleLayout layout = {};
};

class ThreadEventSet final : public EventSet {
public:
    ThreadEventSet(const EventSetOptions& options, const Capabilities& capabilities, const Kernel& kernel)
        : options_(options),
          capabilities_(capabilities),
          kernel_(kernel),
          sampling_(!options.start_disabled && !options.enable_on_exec),
          exec_awaited_(options.enable_on_exec) {}
    ~ThreadEventSet() override {
        for (const auto* list : {&samples_, &sideband_})
            for (const OpenEvent& event : *list) kernel_.close(event.fd);
    }
    ThreadEventSet(const ThreadEventSet&) = delete;
    ThreadEventSet& operator=(const ThreadEventSet&) = delete;

    Result<bool> attach();

    Result<bool> enable() override { return set_sampling(true); }
    Result<bool> disable() override { return set_sampling(false); }
    void wait(std::chrono::milliseconds timeout, int wake_fd) override { rings_->wait(timeout, wake_fd); }
    void drain(RecordSink& sink, std::uint64_t until_ns) override;
    void drain_rest(RecordSink& sink) override;
    [[nodiscard]] std::uint32_t event_of(std::uint64_t id) const override {
        const OpenEvent* event = find(id);
        return event ? event->event : 0;
    }
    [[nodiscard]] EventSetCounts counts() override;
    [[nodiscard]] bool targets_gone() const override { return gone_; }
    std::vector<wire::Notice> take_notices() override { return std::exchange(notices_, {}); }

private:
    enum class Opened { whole, thread_gone, no_more_files, refused };
    // A thread to open.
    struct Found {
        std::uint32_t tid = 0;
        wire::StackMode mode = wire::StackMode::fp;
    };

    Result<bool> open_rings();
    Result<bool> discover();
    Opened open_thread(const Found& found);
    int open_event(perf_event_attr attr, std::uint32_t tid, std::size_t ring, OpenEvent& out);
    int open_sample(std::uint32_t event, const EventPart& part, const Found& found, std::uint32_t cpu_index,
                    std::uint32_t set);
    Result<bool> open_found(const Found& found);
    void learn_forks(std::vector<Found>& to_open);
    [[nodiscard]] Found found_by(const TaskRecord& fork);
    [[nodiscard]] SampleLayout layout_of(wire::StackMode mode, const EventPart& part) const;
    [[nodiscard]] RingDemand ring_demand() const;
    Result<bool> set_sampling(bool on);
    Result<bool> apply_sampling();

    void hand_out(RecordSink& sink, std::uint64_t limit_ns);
    void deliver(const MergedRecord& merged, RecordSink& sink);
    void on_sideband(const MergedRecord& merged);
    [[nodiscard]] const OpenEvent* find(std::uint64_t id) const;
    void open_late_threads();
    std::uint64_t read_lost(const OpenEvent& event) const;
    void report_remaining_loss(const std::vector<OpenEvent>& events, bool sideband, RecordSink& sink);
    void check_targets();
    void say_limits();
    void say(std::string code, std::string text, std::string remedy = {});

    EventSetOptions options_;
    Capabilities capabilities_;
    Kernel kernel_;
    bool sampling_;      // as enable() and disable() said last
    bool exec_awaited_;  // it will turn sampling on
    std::uint64_t apply_until_ns_ = 0;
    std::vector<Watched> targets_;
    std::unordered_map<std::uint32_t, wire::StackMode> modes_;  // of targets, and of their children while we attach
    std::unique_ptr<RingSet> rings_;
    std::vector<OpenEvent> samples_, sideband_;
    std::unordered_map<std::uint64_t, std::uint32_t> by_id_;  // into samples_
    mutable std::uint64_t last_id_ = 0;                       // the id that find() saw last, …
    mutable std::uint32_t last_index_ = 0;                    // … and its answer
    std::uint32_t sets_ = 0;                                  // begun
    std::uint32_t whole_sets_ = 0;                            // of these, opened completely
    int open_failure_ = 0;
    std::uint32_t skipped_threads_ = 0;

    Coverage coverage_;
    std::uint64_t attach_until_ns_ = 0;
    std::vector<std::uint64_t> learned_;  // of each ring: forks before this position are known to coverage_
    std::vector<Found> late_threads_;

    Merge merge_;
    ThreadOwners owners_;
    std::vector<SidebandCopies> copies_;  // of each ring
    Record record_;
    EventSetCounts counts_;
    std::vector<std::uint64_t> lost_records_;  // of each ring, the sum of its LOST records
    std::uint64_t lost_seen_ = 0, lost_read_at_ = 0;
    std::uint64_t broken_ = 0;
    bool exit_seen_ = false, gone_ = false;
    std::uint64_t next_gone_check_ns_ = 0;
    std::vector<wire::Notice> notices_;
    std::vector<std::string> said_;  // codes of all notices, also of those that were taken
};

}  // namespace flamewire::agent
