#include "agent/health/frames.h"

#include <algorithm>

#include "agent/json.h"

namespace flamewire::agent {
namespace {

class Frame : public JsonObject {
public:
    Frame(const Moment& now, std::string_view type) {
        decimal("ts", now.realtime_ns / 1000, 6).number("mono_ns", now.monotonic_ns).text("type", type);
    }
};

// Writes null if there is no previous reading.
void put_share(JsonObject& json, std::string_view name, std::optional<std::uint32_t> share, unsigned digits = 1) {
    if (share)
        json.decimal(name, *share, digits);
    else
        json.null(name);
}

void put_cpu(JsonObject& json, const SystemHealth& health) {
    json.object("cpu");
    put_share(json, "overall_pct", health.shares.overall_permille);
    json.array("per_core");
    for (const CpuShare& share : health.shares.cpus) json.decimal_element(share.permille, 1);
    json.end_array();
    // If CPUs are offline, value n does not belong to CPU n.
    std::uint32_t expected = 0;
    const bool gaps = std::any_of(health.shares.cpus.begin(), health.shares.cpus.end(),
                                  [&](const CpuShare& share) { return share.cpu != expected++; });
    if (gaps) {
        json.array("core_ids");
        for (const CpuShare& share : health.shares.cpus) json.number_element(share.cpu);
        json.end_array();
    }
    if (!health.frequencies_mhz.empty()) {
        json.array("freq_mhz");
        for (const std::uint64_t mhz : health.frequencies_mhz) json.number_element(mhz);
        json.end_array();
    }
    if (!health.stat.cpus.empty()) json.number("num_cores", health.stat.cpus.size());
    json.end_object();
}

void put_memory(JsonObject& json, const SystemHealth& health) {
    const Memory& memory = health.memory;
    const auto used = memory.used_kb();
    json.object("mem")
        .number_if("total_kb", memory.total_kb)
        .number_if("used_kb", used)
        .number_if("available_kb", memory.available_kb)
        .number_if("buffers_kb", memory.buffers_kb)
        .number_if("cached_kb", memory.cached_kb);
    if (memory.swap_total_kb.value_or(0) != 0 && memory.swap_free_kb)
        json.number("swap_total_kb", *memory.swap_total_kb)
            .number("swap_used_kb", *memory.swap_total_kb - std::min(*memory.swap_free_kb, *memory.swap_total_kb));
    if (used && *memory.total_kb != 0) {
        const std::uint64_t total = *memory.total_kb;
        json.decimal("used_pct", static_cast<std::int64_t>((*used * 1000 + total / 2) / total), 1);
    }
    if (health.memory_limit)
        json.number("limit_kb", health.memory_limit->limit_kb).number_if("limit_used_kb", health.memory_limit->used_kb);
    json.end_object();
}

}  // namespace

std::string system_frame(const Moment& now, const SystemHealth& health) {
    Frame frame(now, "system");
    put_cpu(frame, health);
    if (health.memory.total_kb) put_memory(frame, health);
    if (const auto& load = health.load_hundredths)
        frame.object("load")
            .decimal("avg_1m", static_cast<std::int64_t>((*load)[0]), 2)
            .decimal("avg_5m", static_cast<std::int64_t>((*load)[1]), 2)
            .decimal("avg_15m", static_cast<std::int64_t>((*load)[2]), 2)
            .end_object();
    if (health.temperature_c) frame.signed_number("temp_c", *health.temperature_c);
    frame.number_if("uptime_sec", health.uptime_s)
        .number_if("context_switches", health.stat.context_switches)
        .number_if("interrupts", health.stat.interrupts)
        .number_if("procs_running", health.stat.procs_running)
        .number_if("procs_blocked", health.stat.procs_blocked);
    return frame.finish();
}

std::string process_frame(const Moment& now, const ProcessHealth& process) {
    Frame frame(now, "process");
    frame.number("pid", process.pid)
        .text("comm", process.stat.comm)
        .text("state", std::string_view(&process.stat.state, 1));
    put_share(frame, "cpu_pct", process.cpu_permille);
    frame.number_if("rss_kb", process.rss_kb)
        .number_if("vsize_kb", process.vsize_kb)
        .number("threads", process.stat.threads)
        .number_if("fds", process.fds)
        .number_if("voluntary_csw", process.voluntary_switches)
        .number_if("involuntary_csw", process.involuntary_switches)
        .number("minor_faults", process.stat.minor_faults)
        .number("major_faults", process.stat.major_faults)
        .number_if("oom_score", process.oom_score);
    return frame.finish();
}

std::string network_frame(const Moment& now, std::span<const NetworkInterface> interfaces) {
    Frame frame(now, "network");
    frame.object("interfaces");
    for (const NetworkInterface& interface : interfaces)
        frame.object(interface.name)
            .number("rx_bytes", interface.rx_bytes)
            .number("rx_packets", interface.rx_packets)
            .number("rx_errors", interface.rx_errors)
            .number("rx_drops", interface.rx_drops)
            .number("tx_bytes", interface.tx_bytes)
            .number("tx_packets", interface.tx_packets)
            .number("tx_errors", interface.tx_errors)
            .end_object();
    frame.end_object();
    return frame.finish();
}

std::string disk_frame(const Moment& now, std::span<const Disk> disks, const std::optional<ProcessIo>& target) {
    Frame frame(now, "disk");
    frame.object("devices");
    for (const Disk& disk : disks)
        frame.object(disk.name)
            .number("reads", disk.reads)
            .number("read_bytes", disk.read_bytes)
            .number("writes", disk.writes)
            .number("write_bytes", disk.write_bytes)
            .number("read_ms", disk.read_ms)
            .number("write_ms", disk.write_ms)
            .end_object();
    frame.end_object();
    if (target)
        frame.object("proc")
            .number("pid", target->pid)
            .number("read_bytes", target->read_bytes)
            .number("write_bytes", target->write_bytes)
            .number("syscr", target->read_system_calls)
            .number("syscw", target->write_system_calls)
            .end_object();
    return frame.finish();
}

std::string threads_frame(const Moment& now, std::uint32_t pid, std::uint64_t ticks_per_second,
                          std::span<const ThreadTicks> threads) {
    Frame frame(now, "threads");
    frame.number("pid", pid).number("clk_tck", ticks_per_second).array("threads");
    for (const ThreadTicks& thread : threads)
        frame.element()
            .number("tid", thread.tid)
            .text("comm", thread.comm)
            .text("state", std::string_view(&thread.state, 1))
            .number("ticks", thread.ticks)
            .end_object();
    frame.end_array();
    return frame.finish();
}

std::string agent_frame(const Moment& now, const OwnCost& cost, std::optional<std::uint32_t> cpu_share) {
    Frame frame(now, "agent");
    put_share(frame, "cpu_pct", cpu_share, 2);
    if (cost.rss_bytes != 0) frame.number("rss_kb", cost.rss_bytes / 1024);
    frame.number("ring_kb", cost.ring_bytes / 1024)
        .number("queue_batches", cost.queue_batches)
        .number("spool_bytes", cost.spool_bytes)
        .number("samples_read", cost.samples_read)
        .number("samples_lost", cost.samples_lost)
        .number("frames_dropped", cost.frames_dropped);
    return frame.finish();
}

}  // namespace flamewire::agent
