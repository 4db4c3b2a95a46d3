// All rings of a recording. Each CPU has one for samples and one for process and map records, so that samples never
// displace those. Each ring is owned by a dummy event of our own thread on that CPU: if the owner were on a target,
// poll would return POLLHUP forever once the target exits. So the thread that opens a RingSet must outlive it.
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

// What the rings must hold.
struct RingDemand {
    std::uint64_t samples_per_second = 0;  // on one CPU, over all events; 0: unknown
    std::uint64_t sample_bytes = 512;      // of one sample
    std::uint64_t cpus = 1;
    std::uint64_t memory_bytes = 0;  // of the machine; 0: unknown
};
RingPages ring_pages_for(const RingDemand& demand, std::uint64_t page_size);

// The notice if `got` is smaller than `wanted`. Pure.
std::optional<wire::Notice> rings_halved(RingPages got, RingPages wanted, std::uint64_t page_size);

class RingSet {
public:
    // Halves the sizes until the kernel's limit on locked memory allows them; reduces the sample rings first while they
    // are much larger. CPUs that went offline are omitted.
    static Result<std::unique_ptr<RingSet>> open(std::span<const std::uint32_t> cpus, RingPages wanted,
                                                 const Capabilities& capabilities, const Kernel& kernel);
    ~RingSet();
    RingSet(const RingSet&) = delete;
    RingSet& operator=(const RingSet&) = delete;

    // The CPUs that have rings. CPU number i has the rings 2i (samples) and 2i + 1 (sideband).
    [[nodiscard]] std::span<const std::uint32_t> cpus() const { return cpus_; }
    static bool is_sideband(std::size_t ring) { return ring % 2 == 1; }
    static std::size_t cpu_index(std::size_t ring) { return ring / 2; }

    // The descriptor to which SET_OUTPUT redirects the events of that ring.
    [[nodiscard]] int owner(std::size_t ring) const { return owners_[ring]; }
    [[nodiscard]] std::span<RingCursor> cursors() { return cursors_; }
    // Reads every head.
    void load_heads();
    // Returns the bytes that the cursor has passed to the kernel, once they are worth it (an eighth of the ring) or if
    // `all`.
    void release(std::size_t ring, bool all);

    // Waits until a ring is half full, `wake_fd` (>= 0) is readable, or the timeout expires.
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
    std::vector<pollfd> poll_fds_;  // the owners, followed by the wake fd
};

}  // namespace flamewire::agent
