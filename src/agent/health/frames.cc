#include "agent/health/frames.h"

#include <algorithm>

#include "base/json_writer.h"

namespace flamewire::agent {
namespace {

class Frame : public JsonWriter {
public:
    Frame(const Moment& now, std::string_view type) {
        object()
            .member("ts", Decimal{now.realtime_ns / 1000, 6})
            .member("mono_ns", now.monotonic_ns)
            .member("type", type);
    }
    std::string finish() {
        end_object();
        return take();
    }
};

// Writes null if there is no previous reading.
void put_share(JsonWriter& json, std::string_view name, std::optional<std::uint32_t> share, unsigned digits = 1) {
    if (share)
        json.member(name, Decimal{*share, digits});
    else
        json.member(name, nullptr);
}

void put_cpu(JsonWriter& json, const SystemHealth& health) {
    json.object("cpu");
    put_share(json, "overall_pct", health.shares.overall_permille);
    json.array("per_core");
    for (const CpuShare& share : health.shares.cpus) json.number(Decimal{share.permille, 1});
    json.end_array();
    // If CPUs are offline, value n does not belong to CPU n.
    std::uint32_t expected = 0;
    const bool gaps = std::any_of(health.shares.cpus.begin(), health.shares.cpus.end(),
                                  [&](const CpuShare& share) { return share.cpu != expected++; });
    if (gaps) {
        json.array("core_ids");
        for (const CpuShare& share : health.shares.cpus) json.number(share.cpu);
        json.end_array();
    }
    if (!health.frequencies_mhz.empty()) {
        json.array("freq_mhz");
        for (const std::uint64_t mhz : health.frequencies_mhz) json.number(mhz);
        json.end_array();
    }
    if (!health.stat.cpus.empty()) json.member("num_cores", health.stat.cpus.size());
    json.end_object();
}

void put_memory(JsonWriter& json, const SystemHealth& health) {
    const Memory& memory = health.memory;
    const auto used = memory.used_kb();
    json.object("mem")
        .member_if("total_kb", memory.total_kb)
        .member_if("used_kb", used)
        .member_if("available_kb", memory.available_kb)
        .member_if("buffers_kb", memory.buffers_kb)
        .member_if("cached_kb", memory.cached_kb);
    if (memory.swap_total_kb.value_or(0) != 0 && memory.swap_free_kb)
        json.member("swap_total_kb", *memory.swap_total_kb)
            .member("swap_used_kb", *memory.swap_total_kb - std::min(*memory.swap_free_kb, *memory.swap_total_kb));
    if (used && *memory.total_kb != 0) {
        const std::uint64_t total = *memory.total_kb;
        json.member("used_pct", Decimal{static_cast<std::int64_t>((*used * 1000 + total / 2) / total), 1});
    }
    if (health.memory_limit)
        json.member("limit_kb", health.memory_limit->limit_kb).member_if("limit_used_kb", health.memory_limit->used_kb);
    json.end_object();
}

}  // namespace

std::string system_frame(const Moment& now, const SystemHealth& health) {
    Frame frame(now, "system");
    put_cpu(frame, health);
    if (health.memory.total_kb) put_memory(frame, health);
    if (const auto& load = health.load_hundredths)
        frame.object("load")
            .member("avg_1m", Decimal{static_cast<std::int64_t>((*load)[0]), 2})
            .member("avg_5m", Decimal{static_cast<std::int64_t>((*load)[1]), 2})
            .member("avg_15m", Decimal{static_cast<std::int64_t>((*load)[2]), 2})
            .end_object();
    if (health.temperature_c) frame.member("temp_c", *health.temperature_c);
    frame.member_if("uptime_sec", health.uptime_s)
        .member_if("context_switches", health.stat.context_switches)
        .member_if("interrupts", health.stat.interrupts)
        .member_if("procs_running", health.stat.procs_running)
        .member_if("procs_blocked", health.stat.procs_blocked);
    return frame.finish();
}

std::string process_frame(const Moment& now, const ProcessHealth& process) {
    Frame frame(now, "process");
    frame.member("pid", process.pid)
        .member("comm", process.stat.comm)
        .member("state", std::string_view(&process.stat.state, 1));
    put_share(frame, "cpu_pct", process.cpu_permille);
    frame.member_if("rss_kb", process.rss_kb)
        .member_if("vsize_kb", process.vsize_kb)
        .member("threads", process.stat.threads)
        .member_if("fds", process.fds)
        .member_if("voluntary_csw", process.voluntary_switches)
        .member_if("involuntary_csw", process.involuntary_switches)
        .member("minor_faults", process.stat.minor_faults)
        .member("major_faults", process.stat.major_faults)
        .member_if("oom_score", process.oom_score);
    return frame.finish();
}

std::string network_frame(const Moment& now, std::span<const NetworkInterface> interfaces) {
    Frame frame(now, "network");
    frame.object("interfaces");
    for (const NetworkInterface& interface : interfaces)
        frame.object(interface.name)
            .member("rx_bytes", interface.rx_bytes)
            .member("rx_packets", interface.rx_packets)
            .member("rx_errors", interface.rx_errors)
            .member("rx_drops", interface.rx_drops)
            .member("tx_bytes", interface.tx_bytes)
            .member("tx_packets", interface.tx_packets)
            .member("tx_errors", interface.tx_errors)
            .end_object();
    frame.end_object();
    return frame.finish();
}

std::string disk_frame(const Moment& now, std::span<const Disk> disks, const std::optional<ProcessIo>& target) {
    Frame frame(now, "disk");
    frame.object("devices");
    for (const Disk& disk : disks)
        frame.object(disk.name)
            .member("reads", disk.reads)
            .member("read_bytes", disk.read_bytes)
            .member("writes", disk.writes)
            .member("write_bytes", disk.write_bytes)
            .member("read_ms", disk.read_ms)
            .member("write_ms", disk.write_ms)
            .end_object();
    frame.end_object();
    if (target)
        frame.object("proc")
            .member("pid", target->pid)
            .member("read_bytes", target->read_bytes)
            .member("write_bytes", target->write_bytes)
            .member("syscr", target->read_system_calls)
            .member("syscw", target->write_system_calls)
            .end_object();
    return frame.finish();
}

std::string threads_frame(const Moment& now, std::uint32_t pid, std::uint64_t ticks_per_second,
                          std::span<const ThreadTicks> threads) {
    Frame frame(now, "threads");
    frame.member("pid", pid).member("clk_tck", ticks_per_second).array("threads");
    for (const ThreadTicks& thread : threads)
        frame.object()
            .member("tid", thread.tid)
            .member("comm", thread.comm)
            .member("state", std::string_view(&thread.state, 1))
            .member("ticks", thread.ticks)
            .end_object();
    frame.end_array();
    return frame.finish();
}

std::string agent_frame(const Moment& now, const OwnCost& cost, std::optional<std::uint32_t> cpu_share) {
    Frame frame(now, "agent");
    put_share(frame, "cpu_pct", cpu_share, 2);
    if (cost.rss_bytes != 0) frame.member("rss_kb", cost.rss_bytes / 1024);
    frame.member("ring_kb", cost.ring_bytes / 1024)
        .member("queue_batches", cost.queue_batches)
        .member("spool_bytes", cost.spool_bytes)
        .member("samples_read", cost.samples_read)
        .member("samples_lost", cost.samples_lost)
        .member("frames_dropped", cost.frames_dropped);
    return frame.finish();
}

}  // namespace flamewire::agent
