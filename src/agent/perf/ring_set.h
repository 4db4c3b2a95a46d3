// All rings of a recording: on each CPU one for samples and one for process and map records, so that samples never push
// those out. Each is owned by a dummy event of our own thread on that CPU: an owner on a target that exits would leave
// poll at POLLHUP for ever. So the thread that opens a RingSet must outlive it.
#pragma once

#include <poll.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "agent/perf/capabilities.h"
#include "agent/perf/kernel.h"
#include "agent/perf/merge.h"
#include "agent/perf/ring.h"

namespace flamewire::agent {

struct RingPages {
    std::uint32_t sample = 1;  // powers of two
    std::uint32_t sideband = 1;
};

// What the rings are for.
struct RingDemand {
    std::uint64_t samples_per_second = 0;  // on one CPU, over all events; 0: not known
    std::uint64_t sample_bytes = 512;      // of one sample
    std::uint64_t cpus = 1;
    std::uint64_t memory_bytes = 0;  // of the machine; 0: not known
};
// Pure.
RingPages ring_pages_for(const RingDemand& demand, std::uint64_t page_size);

// The notice when `got` is less than `wanted`. Pure.
std::optional<wire::Notice> rings_halved(RingPages got, RingPages wanted, std::uint64_t page_size);

class RingSet {
public:
    // Halves the sizes until the kernel's limit on locked memory allows them, the sample rings' first while they are
    // much the larger ones. CPUs that went offline are left out.
    static Result<std::unique_ptr<RingSet>> open(std::span<const std::uint32_t> cpus, RingPages wanted,
                                                 const Capabilities& capabilities, const Kernel& kernel);
    ~RingSet();
    RingSet(const RingSet&) = delete;
    RingSet& operator=(const RingSet&) = delete;

    // The CPUs that have rings. CPU number i has the rings 2i (samples) and 2i + 1 (sideband).
    [[nodiscard]] std::span<const std::uint32_t> cpus() const { return cpus_; }
    static bool is_sideband(std::size_t ring) { return ring % 2 == 1; }
    static std::size_t cpu_index(std::size_t ring) { return ring / 2; }

    // Where SET_OUTPUT sends the events of that ring.
    [[nodiscard]] int owner(std::size_t ring) const { return owners_[ring]; }
    [[nodiscard]] std::span<RingCursor> cursors() { return cursors_; }
    // Reads every head.
    void load_heads();
    // Gives what the cursor has passed back to the kernel, when it is worth it (an eighth of the ring) or `all`.
    void release(std::size_t ring, bool all);

    // Sleeps until a ring is half full, `wake_fd` (>= 0) is readable, or the time is over.
    void wait(std::chrono::milliseconds timeout, int wake_fd);

    [[nodiscard]] RingPages pages() const { return pages_; }
    [[nodiscard]] std::uint64_t bytes() const;

private:
    explicit RingSet(const Kernel& kernel) : kernel_(kernel) {}
    Result<bool> open_cpu(std::uint32_t cpu, RingPages pages, const Capabilities& capabilities);
    Result<bool> open_all(std::span<const std::uint32_t> cpus, RingPages pages, const Capabilities& capabilities);
    void close_all();

    Kernel kernel_;
    RingPages pages_;
    std::vector<std::uint32_t> cpus_;
    std::vector<int> owners_;
    std::vector<Ring> rings_;
    std::vector<RingCursor> cursors_;
    std::vector<std::uint64_t> released_;
    std::vector<pollfd> poll_fds_;  // the owners, and the wake fd behind them
};

}  // namespace flamewire::agent
