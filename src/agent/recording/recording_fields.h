// The fields of a recording's inputs in the order in which a capture stores them. One list per struct serves both
// encoding and decoding. Integers are varints (base/varint.h); strings and lists are prefixed with their length.
// Changing a list needs a new version in capture_magic (capture/format.h).
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "agent/recording/recorder_command.h"

namespace flamewire::agent {

// `Archive` has number(std::uint64_t&) and text(std::string&). If Archive::reads, they assign to their argument, and
// count() returns the length of the next list, checked against the remaining bytes. at_end(): there is nothing left to
// read.
template <class Archive>
class Fields {
public:
    explicit Fields(Archive& archive) : archive_(archive) {}

    template <class... T>
    void operator()(T&... values) {
        (field(values), ...);
    }

private:
    void field(std::string& text) { archive_.text(text); }

    template <class T>
        requires std::integral<T> || std::is_enum_v<T>
    void field(T& value) {
        auto number = static_cast<std::uint64_t>(value);
        archive_.number(number);
        value = static_cast<T>(number);
    }

    template <class T>
    void field(std::vector<T>& list) {
        std::uint64_t elements = list.size();
        if constexpr (Archive::reads)
            list.resize(static_cast<std::size_t>(archive_.count()));
        else
            archive_.number(elements);
        for (T& one : list) field(one);
    }

    template <class T>
    void field(std::optional<T>& value) {
        bool given = value.has_value();
        field(given);
        if constexpr (Archive::reads)
            if (given) value.emplace();
        if (given) field(*value);
    }

    void field(Settings& s) {
        (*this)(s.events, s.filter, s.stat, s.frequency_hz, s.frequency_given, s.period, s.duration_s, s.interval_ms,
                s.unwind, s.stack_bytes, s.max_depth, s.max_depth_given, s.unwind_memory_bytes, s.kernel);
    }
    void field(Scope& s) { (*this)(s.wide, s.cpus, s.cgroups, s.mode); }
    void field(EventPart& p) { (*this)(p.pmu, p.type, p.config, p.config1, p.config2, p.cpus, p.woken_at); }
    void field(EventSpec& s) {
        (*this)(s.name, s.unit, s.parts, s.exclude_user, s.exclude_kernel, s.precise, s.frequency_hz, s.period,
                s.off_cpu, s.filter, s.fields);
    }
    void field(RequestedCounter& c) { (*this)(c.spec, c.optional); }
    void field(RequestedEvents& w) { (*this)(w.events, w.counters); }
    void field(RecordingTarget& t) { (*this)(t.name, t.pids, t.scope); }
    // Without `follows_name`, which is a separate input.
    void field(RecordingPlan& p) {
        (*this)(p.target, p.pids, p.scope, p.settings, p.wanted, p.launched, p.program, p.delay_ms, p.ring_pages);
        traced(p.settings, p.wanted);
    }
    void field(Machine& m) {
        (*this)(m.host, m.arch, m.kernel_release, m.boot_id, m.page_size, m.cpus, m.little_endian, m.address_bits);
    }
    // Without `findings`, which a recording does not use.
    void field(Capabilities& c) {
        (*this)(c.perf_events, c.open_errno, c.paranoid, c.kernel_samples, c.format_lost, c.build_id, c.clockid,
                c.max_sample_rate_hz, c.max_stack, c.mlock_bytes_per_cpu, c.pmus, c.sampling_events, c.register_mask,
                c.stack_pointer_mask, c.register_arch, c.user_stacks, c.branch_stacks, c.unwind_modes);
    }
    void field(Change& c) {
        (*this)(c.settings, c.wanted, c.capabilities, c.target);
        traced(c.settings, c.wanted);
    }
    // What is traced comes last, because older captures end here.
    void traced(Settings& settings, RequestedEvents& wanted) {
        if (archive_.at_end()) return;
        (*this)(settings.trace_first);
        for (EventSpec& spec : wanted.events) {
            (*this)(spec.traced, spec.trigger);
            for (EventPart& part : spec.parts) values(part.values);
        }
    }
    void values(std::shared_ptr<const perf::SampleValues>& values) {
        std::optional<perf::SampleValues> copy;
        if (values) copy = *values;
        field(copy);
        if (Archive::reads && copy) values = std::make_shared<const perf::SampleValues>(*std::move(copy));
    }
    void field(perf::ValueField& f) { (*this)(f.name, f.kind, f.place, f.offset, f.size); }
    void field(perf::SampleValues& v) { (*this)(v.fields, v.print_format); }
    void field(AddProcesses& a) { (*this)(a.pids); }
    void field(AddBreakpoints& a) { (*this)(a.events); }
    void field(SetCountBy& c) { (*this)(c.by); }

    Archive& archive_;
};

// RecorderCommand in a capture.
enum class CommandKind : std::uint8_t {
    pause,
    resume,
    change,
    count_by,
    resolve_kernel,
    begin_delay,
    add_processes,
    add_breakpoints
};

}  // namespace flamewire::agent
