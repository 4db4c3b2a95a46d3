#include "agent/perf/ring_set.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cerrno>

#include "agent/perf/attr.h"
#include "agent/perf/open_error.h"

namespace flamewire::agent {
namespace {

// The rings are read every 100 ms. Space for five such ticks allows the sampler to be late (busy CPUs, a slow board, a
// throttled container) without losses, and the half-full watermark wakes it earlier. Samples with a stack are thirty
// times as large: their rings have space for two ticks, and rely on the watermark.
constexpr std::uint64_t planned_ms = 500, planned_ms_with_stack = 200;
constexpr std::uint64_t with_stack_bytes = 2'048;
constexpr std::uint64_t min_sample_ring = std::uint64_t{64} << 10;
constexpr std::uint64_t max_sample_ring = std::uint64_t{1} << 20, max_stack_ring = std::uint64_t{8} << 20;
// Events by period have no known rate: reserve space for this many samples. 20,000 context switches per second need all
// of it if the sampler is 400 ms late.
constexpr std::uint64_t unknown_rate_samples = 8'192, unknown_rate_stacks = 512;
constexpr std::uint64_t max_unknown_rate_ring = std::uint64_t{4} << 20;
// A ring with space for few samples loses data whenever the sampler is late at all.
constexpr std::uint64_t least_samples = 8;
// With privileges the kernel does not limit the rings: all together may take this fraction of the machine's memory.
constexpr std::uint64_t memory_share = 32;
// About 1,200 forks and exits or 900 maps. With min_sample_ring or 256 KiB of samples this stays within the 516 KiB per
// CPU that an ordinary user may lock by default (kernel.perf_event_mlock_kb).
constexpr std::uint64_t sideband_ring = std::uint64_t{128} << 10;

std::uint32_t pages_of(std::uint64_t bytes, std::uint64_t page_size) {
    return static_cast<std::uint32_t>(std::bit_ceil(std::max<std::uint64_t>(bytes / page_size, 1)));
}

}  // namespace

RingPages ring_pages_for(const RingDemand& demand, std::uint64_t page_size) {
    const bool stacks = demand.sample_bytes > with_stack_bytes;
    const std::uint64_t samples =
        demand.samples_per_second == 0
            ? (stacks ? unknown_rate_stacks : unknown_rate_samples)
            : demand.samples_per_second * (stacks ? planned_ms_with_stack : planned_ms) / 1000;
    const std::uint64_t without_stacks = demand.samples_per_second == 0 ? max_unknown_rate_ring : max_sample_ring;
    const std::uint64_t most = stacks ? max_stack_ring : without_stacks;
    const std::uint64_t least = std::max(min_sample_ring, least_samples * demand.sample_bytes);
    std::uint64_t bytes = std::bit_ceil(std::clamp(samples * demand.sample_bytes, least, most));
    if (demand.memory_bytes != 0)
        while (bytes * demand.cpus > demand.memory_bytes / memory_share && bytes / 2 >= least) bytes /= 2;
    return {pages_of(bytes, page_size), pages_of(sideband_ring, page_size)};
}

std::optional<wire::Notice> rings_halved(RingPages got, RingPages wanted, std::uint64_t page_size) {
    if (got.sample >= wanted.sample) return std::nullopt;
    return wire::Notice{
        "rings-halved",
        fmt::format("The sample rings have {} KiB per CPU instead of {}: the kernel's limit on locked memory.",
                    got.sample * page_size / 1024, wanted.sample * page_size / 1024),
        // Each ring has a control page.
        fmt::format("sysctl -w kernel.perf_event_mlock_kb={}, or setcap cap_ipc_lock+ep flamewire-agent",
                    (wanted.sample + wanted.sideband + 2) * page_size / 1024)};
}

Result<std::unique_ptr<RingSet>> RingSet::open(std::span<const std::uint32_t> cpus, RingPages wanted,
                                               const Capabilities& capabilities, const Kernel& kernel) {
    std::unique_ptr<RingSet> set(new RingSet(kernel));
    for (RingPages pages = wanted;;) {
        const auto opened = set->open_all(cpus, pages, capabilities);
        if (opened) break;
        set->close_all();
        const bool smaller = pages.sample > 1 || pages.sideband > 1;
        const bool over_limit = opened.error().errno_value == EPERM || opened.error().errno_value == ENOMEM;
        if (!over_limit || !smaller) return std::unexpected(opened.error());
        const bool sample_alone = pages.sample > 2 * pages.sideband;
        pages = {std::max(pages.sample / 2, 1U), sample_alone ? pages.sideband : std::max(pages.sideband / 2, 1U)};
    }
    if (set->cpus_.empty()) return fail(ErrorCode::unsupported, "no CPU could be opened for sampling");
    return set;
}

Result<bool> RingSet::open_all(std::span<const std::uint32_t> cpus, RingPages pages, const Capabilities& capabilities) {
    pages_ = pages;
    for (const std::uint32_t cpu : cpus) {
        const auto opened = open_cpu(cpu, pages, capabilities);
        if (!opened && opened.error().errno_value != ENODEV) return opened;
    }
    return true;
}

Result<bool> RingSet::open_cpu(std::uint32_t cpu, RingPages pages, const Capabilities& capabilities) {
    for (const std::uint32_t count : {pages.sample, pages.sideband}) {
        perf_event_attr attr = owner_attr(count * kernel_.page_size, capabilities);
        const int fd = kernel_.open(attr, 0, static_cast<int>(cpu));
        if (fd < 0) return std::unexpected(open_error({-fd, "of a ring", 0, capabilities.paranoid}));
        owners_.push_back(fd);
        auto ring = Ring::map(fd, count, kernel_);
        if (!ring && ring.error().code == ErrorCode::permission)
            return std::unexpected(
                Error{ErrorCode::permission, ring.error().errno_value,
                      "the kernel's limit on locked memory leaves no room for perf rings. Try: sysctl "
                      "-w kernel.perf_event_mlock_kb=1024, or setcap cap_ipc_lock+ep flamewire-agent"});
        if (!ring) return std::unexpected(ring.error());
        cursors_.emplace_back(ring->data(), ring->size());
        cursors_.back().tail = ring->tail();
        cursors_.back().head = cursors_.back().tail;
        released_.push_back(cursors_.back().tail);
        poll_fds_.push_back({fd, POLLIN, 0});
        rings_.push_back(*std::move(ring));
    }
    cpus_.push_back(cpu);
    return true;
}

void RingSet::close_all() {
    rings_.clear();
    cursors_.clear();
    released_.clear();
    poll_fds_.clear();
    cpus_.clear();
    for (const int fd : owners_) kernel_.close(fd);
    owners_.clear();
}

RingSet::~RingSet() { close_all(); }

void RingSet::load_heads() {
    for (std::size_t ring = 0; ring < rings_.size(); ++ring) cursors_[ring].head = rings_[ring].head(kernel_);
}

void RingSet::release(std::size_t ring, bool all) {
    const std::uint64_t tail = cursors_[ring].tail;
    const std::uint64_t done = tail - released_[ring];
    if (done == 0 || (!all && done < rings_[ring].size() / 8)) return;
    rings_[ring].release_to(tail);
    released_[ring] = tail;
}

void RingSet::wait(std::chrono::milliseconds timeout, int wake_fd) {
    poll_fds_.push_back({wake_fd, POLLIN, 0});  // poll skips negative numbers
    const int ready = kernel_.poll(poll_fds_, static_cast<int>(timeout.count()));
    poll_fds_.pop_back();
    if (ready <= 0) return;
    // An owner that hung up (its thread is gone) would end every wait immediately. Its ring is still read at each tick.
    for (pollfd& entry : poll_fds_)
        if ((entry.revents & (POLLHUP | POLLERR | POLLNVAL)) != 0) entry.fd = -1;
}

std::uint64_t RingSet::bytes() const {
    std::uint64_t total = 0;
    for (const Ring& ring : rings_) total += ring.mapped_bytes();
    return total;
}

}  // namespace flamewire::agent
