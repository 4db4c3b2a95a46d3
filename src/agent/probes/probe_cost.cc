#include "agent/probes/probe_cost.h"

#include <algorithm>
#include <array>
#include <cerrno>

#include "agent/perf/attr.h"
#include "agent/perf/ring.h"
#include "agent/probes/probed_code.h"
#include "base/clock.h"
#include "unwind/frame/linux_registers.h"

namespace flamewire::agent {
namespace {

#if defined(__aarch64__)
constexpr unwind::Arch own_arch = unwind::Arch::aarch64;
#else
constexpr unwind::Arch own_arch = unwind::Arch::x86_64;
#endif

// Where a hit takes 10 us, 400 hits take 4 ms. The minimum of the batches is robust to other load.
constexpr std::uint32_t batches = 8, hits_per_batch = 50, first_hits = 2;
// Samples are measured in batches that fit into the ring, because the kernel copies nothing into a full ring.
constexpr std::uint32_t sample_batches = 16, samples_per_batch = 4, ring_bytes = 128 * 1024;
constexpr std::uint32_t copied_bytes = 16384;

// An emulated instruction traps once, any other twice: the breakpoint, and the single step of its copy. The second trap
// is at least half of the cost: an emulated hit was measured at 0.36 of another one on an x86 machine, at 0.51 on
// aarch64 (the kernel's selftests/bpf bench), and at 0.06 in a guest.
constexpr std::uint64_t emulated_percent = 70;

// A call chain for the kernel. Each frame has the address of the next one, and a return address.
constexpr std::size_t chain_length = 32;
struct Frame {
    const Frame* next = nullptr;
    std::uintptr_t return_address = 0;
};
using Chain = std::array<Frame, chain_length>;

// The CPU time between two readings of the clock.
std::uint64_t clock_ns() {
    std::uint64_t best = ~std::uint64_t{0};
    for (std::uint32_t i = 0; i < sample_batches; ++i) {
        const std::uint64_t begin = thread_cpu_ns();
        best = std::min(best, thread_cpu_ns() - begin);
    }
    return best;
}

// A probe on the calling thread. It samples never, until sample_all().
class Probe {
public:
    Probe(perf_event_attr attr, const ProbedCode& code, const Kernel& calls) : code_(code), calls_(calls) {
        attr.sample_period = std::uint64_t{1} << 40;
        fd_ = calls.open(attr, 0, -1);
    }
    ~Probe() {
        if (fd_ >= 0) calls_.close(fd_);
    }
    Probe(const Probe&) = delete;
    Probe& operator=(const Probe&) = delete;

    [[nodiscard]] int fd() const { return fd_; }
    [[nodiscard]] bool sample_all() const {
        const std::uint64_t period = 1;
        return calls_.ioctl(fd_, PERF_EVENT_IOC_PERIOD, reinterpret_cast<unsigned long>(&period)) == 0;
    }

    void hit(std::uint32_t hits, const Chain& chain) {
        for (std::uint32_t i = 0; i < hits; ++i) code_.function(chain.data());
        hits_ += hits;
    }
    // CPU time per hit.
    std::uint64_t time_hits(std::uint32_t hits, const Chain& chain, std::uint64_t clock) {
        const std::uint64_t begin = thread_cpu_ns();
        hit(hits, chain);
        const std::uint64_t used = thread_cpu_ns() - begin;
        return (used - std::min(used, clock)) / hits;
    }
    // Whether each call was one hit.
    [[nodiscard]] bool counted_all() const {
        std::array<std::uint64_t, 1> count{};
        return calls_.read(fd_, count) == 1 && count[0] == hits_;
    }

private:
    const ProbedCode& code_;
    const Kernel& calls_;
    std::uint64_t hits_ = 0;
    int fd_ = -1;
};

struct HitCost {
    std::uint32_t counted = 0, sampled = 0;  // nanoseconds; 0: not measured
    [[nodiscard]] std::uint32_t added() const { return counted != 0 && sampled > counted ? sampled - counted : 0; }
};

class Measurement {
public:
    Measurement(const MakeOwnProbe& make_probe, const Kernel& calls)
        : make_probe_(make_probe), calls_(calls), clock_(clock_ns()) {}

    // `field`: what samples contain besides registers. The frame of this function is below a stack that the kernel can
    // copy completely.
    [[gnu::noinline]] HitCost run(ProbedKind kind, std::uint64_t field, int& error) {
        struct {
            Chain chain{};
            std::array<std::byte, copied_bytes> rest{};
        } stack;
        asm volatile("" : : "r"(&stack) : "memory");
        const auto code = probed_code(kind);
        if (!code || error != 0) return {};
        const Frame* outer = nullptr;
        for (std::size_t i = chain_length; i-- > 0; outer = &stack.chain[i])
            stack.chain[i] = {outer, reinterpret_cast<std::uintptr_t>(code->function)};
        // With PERF_SAMPLE_PERIOD the kernel samples every hit, whatever the period.
        constexpr std::uint64_t always = sample_fields ^ PERF_SAMPLE_CALLCHAIN ^ PERF_SAMPLE_PERIOD;
        auto attr = make_probe_(code->file_offset);
        if (!attr) {
            error = attr.error().errno_value != 0 ? attr.error().errno_value : ENOENT;
            return {};
        }
        attr->size = sizeof(perf_event_attr);
        attr->exclude_callchain_kernel = 1;
        attr->sample_type = always | PERF_SAMPLE_REGS_USER | field;
        attr->sample_regs_user = unwind::sampled_register_mask(own_arch);
        attr->sample_stack_user = field == PERF_SAMPLE_STACK_USER ? copied_bytes : 0;
        Probe probe(*attr, *code, calls_);
        if (probe.fd() < 0) error = -probe.fd();
        return probe.fd() < 0 ? HitCost{} : cost(probe, stack.chain);
    }

private:
    HitCost cost(Probe& probe, const Chain& chain) const {
        probe.hit(first_hits, chain);  // the kernel allocates the page of instruction copies
        std::uint64_t counted = ~std::uint64_t{0}, sampled = 0;
        for (std::uint32_t i = 0; i < batches; ++i)
            counted = std::min(counted, probe.time_hits(hits_per_batch, chain, clock_));
        if (!probe.counted_all()) return {};
        HitCost found{.counted = static_cast<std::uint32_t>(counted)};
        const auto pages = std::max<std::uint64_t>(1, ring_bytes / calls_.page_size);
        auto ring = Ring::map(probe.fd(), static_cast<std::uint32_t>(pages), calls_);
        if (!ring || !probe.sample_all()) return found;
        // Where kernel.perf_event_max_sample_rate is low, the kernel drops samples. Batches without a loss count.
        std::uint64_t most = 0;
        for (std::uint32_t i = 0; i < sample_batches; ++i) {
            const std::uint64_t time = probe.time_hits(samples_per_batch, chain, clock_);
            const std::uint64_t head = ring->head(calls_), written = head - ring->tail();
            sampled = written > most ? time : written == most ? std::min(sampled, time) : sampled;
            most = std::max(most, written);
            ring->release_to(head);
        }
        if (most == 0) return found;
        found.sampled = static_cast<std::uint32_t>(sampled);
        return found;
    }

    const MakeOwnProbe& make_probe_;
    const Kernel& calls_;
    std::uint64_t clock_;
};

}  // namespace

std::uint32_t ProbeCosts::copy_ns(std::uint32_t bytes) const {
    return static_cast<std::uint32_t>(std::uint64_t{copy_16k_ns} * bytes / copied_bytes);
}

ProbeCosts measure_probe_costs(const MakeOwnProbe& make_probe, const Kernel& calls) {
    ProbeCosts costs;
    if (!has_probed_code) costs.error = ENOSYS;
    Measurement measurement(make_probe, calls);
    const HitCost with_chain = measurement.run(ProbedKind::emulated, PERF_SAMPLE_CALLCHAIN, costs.error);
    const HitCost with_registers = measurement.run(ProbedKind::nop, 0, costs.error);
    const HitCost with_stack = measurement.run(ProbedKind::other, PERF_SAMPLE_STACK_USER, costs.error);
    costs.emulated_hit_ns = with_chain.counted;
    costs.other_hit_ns = with_stack.counted;
    costs.sample_ns = with_registers.added();
    costs.chain_32_ns = with_chain.added() - std::min(with_chain.added(), costs.sample_ns);
    costs.copy_16k_ns = with_stack.added() - std::min(with_stack.added(), costs.sample_ns);

    const auto is_emulated = [&](const HitCost& cost) {
        return cost.counted != 0 && std::uint64_t{cost.counted} * 100 <= with_stack.counted * emulated_percent;
    };
    if (is_emulated(with_chain)) costs.emulated = assumed_emulated(own_arch);
    constexpr bool arm = own_arch == unwind::Arch::aarch64;
    if (is_emulated(with_registers)) costs.emulated.insert(arm ? InstructionClass::nop : InstructionClass::long_nop);
    return costs;
}

InstructionClasses assumed_emulated(unwind::Arch arch) {
    using enum InstructionClass;
    switch (arch) {
        case unwind::Arch::x86_64:
        case unwind::Arch::x86: return {nop, push, conditional_branch, jump, call};
        case unwind::Arch::aarch64: return {conditional_branch, jump, call, address};
        case unwind::Arch::arm: break;
    }
    return {};
}

}  // namespace flamewire::agent
