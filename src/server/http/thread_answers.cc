// Threads with their samples, CPU time and states.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/cgroup_path.h"
#include "profile/query/query.h"
#include "profile/query/thread_cpu.h"
#include "profile/query/thread_states.h"
#include "server/http/profile_answers.h"
#include "server/http/session_view.h"
#include "wire/control.h"

namespace flamewire::server {
namespace {

constexpr std::uint64_t max_slices = 500;
// Health is collected at least every minute (docs/health.md). Older frames do not describe the end of a range.
constexpr std::uint64_t health_age_ns = 90'000'000'000;
constexpr std::uint64_t round_ns = 1'000'000'000;  // frames of one round arrive within this time

using ThreadKey = std::pair<std::uint32_t, std::uint32_t>;  // pid, tid

// proc(5), "state".
std::string_view state_of(char letter) {
    switch (letter) {
        case 'R': return "running";
        case 'S':
        case 'I': return "sleeping";
        case 'D': return "waiting";
        case 'T':
        case 't': return "stopped";
        case 'Z':
        case 'X':
        case 'x': return "ended";
        default: return {};
    }
}

void read_states(const std::string& frame, std::map<ThreadKey, std::string_view>& states) {
    const auto json = wire::parse_object(frame);
    if (!json) return;
    const auto pid = json->FindMember("pid");
    const auto threads = json->FindMember("threads");
    if (pid == json->MemberEnd() || !pid->value.IsUint() || threads == json->MemberEnd() || !threads->value.IsArray())
        return;
    for (const auto& thread : threads->value.GetArray()) {
        if (!thread.IsObject()) continue;
        const auto tid = thread.FindMember("tid");
        const auto state = thread.FindMember("state");
        if (tid == thread.MemberEnd() || !tid->value.IsUint() || state == thread.MemberEnd() ||
            !state->value.IsString() || state->value.GetStringLength() == 0)
            continue;
        if (const std::string_view word = state_of(state->value.GetString()[0]); !word.empty())
            states[{pid->value.GetUint(), tid->value.GetUint()}] = word;
    }
}

// The last reported states before `end_ns`. Empty if thread states are not collected.
std::map<ThreadKey, std::string_view> states_at(const HealthHistory& health, std::uint64_t end_ns) {
    const auto frames = health.between("threads", end_ns > health_age_ns ? end_ns - health_age_ns : 0, end_ns);
    std::map<ThreadKey, std::string_view> states;
    if (frames.empty()) return states;
    const std::uint64_t newest_ns = frames.back().mono_ns;
    for (const HealthHistory::Frame& frame : frames)
        if (newest_ns - frame.mono_ns < round_ns) read_states(frame.json, states);
    return states;
}

std::string_view name_of(profile::CpuSource source) {
    switch (source) {
        case profile::CpuSource::counted: return "counted";
        case profile::CpuSource::clock_samples: return "clock_samples";
        case profile::CpuSource::share: return "share";
        case profile::CpuSource::none: break;
    }
    return "none";
}

void write_cpu(JsonWriter& json, const profile::ThreadCpu& cpu) {
    json.key("cpu_percent");
    if (cpu.source == profile::CpuSource::none)
        json.null();
    else
        json.number(cpu.percent);
    json.member("cpu_from", name_of(cpu.source));
}

void write_top(JsonWriter& json, const profile::Store& store, const profile::ThreadRow& row) {
    json.member("top_function", row.top.empty() ? std::string_view{} : store.string(row.top.front().function.name));
    json.list("top_functions", row.top, [&](const profile::ThreadRow::Top& top) {
        json.object();
        json.member("name", store.string(top.function.name));
        json.member("samples", top.self.samples);
        json.member("weight", top.self.weight);
        json.member("percent", views::percent(top.self.weight, row.weight.weight));
        json.end_object();
    });
}

// Writes where the process runs, as far as that is known.
void write_place(JsonWriter& json, const profile::Process& process) {
    if (process.cgroup.size() > 1) json.member("cgroup", process.cgroup);
    if (!process.container_id.empty()) json.member("container_id", process.container_id);
    if (const std::string pod = parse_cgroup_path(process.cgroup).pod_uid; !pod.empty()) json.member("pod_uid", pod);
}

double ms(std::uint64_t ns) { return static_cast<double>(ns) / 1e6; }

void write_durations(JsonWriter& json, std::string_view name, const wire::Durations& durations) {
    json.key(name);
    json.object();
    json.member("count", durations.count());
    json.member("sum", ms(durations.sum_ns));
    json.member("min", ms(durations.min_ns));
    json.member("p50", ms(durations.quantile_ns(500)));
    json.member("p95", ms(durations.quantile_ns(950)));
    json.member("p99", ms(durations.quantile_ns(990)));
    json.member("max", ms(durations.max_ns));
    json.end_object();
}

void write_times(JsonWriter& json, const wire::ThreadTimes& times) {
    for (std::size_t state = 0; state < wire::thread_states; ++state)
        json.member(profile::thread_state_names[state], ms(times.state_ns[state]));
    json.member("preempted", times.preempted);
    json.member("slept", times.slept);
    json.member("io_waits", times.io_waits);
    write_durations(json, "latency", times.queued);
    write_durations(json, "slice", times.slices);
}

}  // namespace

Answer thread_summary_answer(const Session& session, const Request& request) {
    const auto slices = parse_slices(request, 0, max_slices);
    if (!slices) return error_answer(slices.error());
    const std::uint64_t origin_ns = session.status().start_ns();
    return with_view(session, request, [&](const profile::Store& store, const views::View& view, const ViewHead& head) {
        const auto rows = profile::thread_summary(store, view.filter);
        const auto cpu = profile::thread_cpu(store, view.filter, rows, origin_ns);
        // The range as far as it is known. The reported states are those at its end.
        profile::Filter range = view.filter;
        range.start_ns = std::max(range.start_ns, origin_ns);
        range.end_ns = std::max(range.start_ns, std::min(range.end_ns, store.known_until_ns()));
        const auto states = states_at(session.health(), range.end_ns);
        std::map<profile::ThreadId, std::vector<profile::Weight>> lines;
        if (*slices != 0 && range.end_ns > range.start_ns)
            for (auto& lane : profile::histogram_by(store, range, *slices, profile::Lanes::threads))
                lines[lane.id] = std::move(lane.slices);
        profile::Weight total;
        for (const auto& row : rows) total += row.weight;

        JsonWriter json;
        json.object();
        write_view(json, head);
        json.member("total_samples", total.samples);
        json.member("total_weight", total.weight);
        json.list("threads", rows, [&](const profile::ThreadRow& row) {
            const profile::Thread& thread = store.threads()[row.thread];
            const bool ended = thread.ended_ns != 0 && thread.ended_ns <= range.end_ns;
            const auto state = states.find({thread.pid, thread.tid});
            const auto used = cpu.find(row.thread);
            json.object();
            write_thread(json, thread);
            write_place(json, store.processes()[thread.process]);
            json.member("samples", row.weight.samples);
            json.member("weight", row.weight.weight);
            json.member("percent", views::percent(row.weight.weight, total.weight));
            json.member("state", ended ? "ended" : state != states.end() ? state->second : "alive");
            write_cpu(json, used == cpu.end() ? profile::ThreadCpu{} : used->second);
            write_top(json, store, row);
            if (*slices != 0) {
                auto line = lines.find(row.thread);
                if (line == lines.end()) line = lines.emplace(row.thread, std::vector<profile::Weight>(*slices)).first;
                json.list("slices", line->second, [&](const profile::Weight& slice) { json.number(slice.samples); });
            }
            json.end_object();
        });
        json.end_object();
        return json_answer(json.take());
    });
}

Answer thread_states_answer(const Session& session, const Request& request) {
    const auto slices = parse_slices(request, 0, max_slices);
    if (!slices) return error_answer(slices.error());
    const std::uint64_t origin_ns = session.status().start_ns();
    return with_view(session, request, [&](const profile::Store& store, const views::View& view, const ViewHead& head) {
        const auto states = profile::states_of_threads(store, view.filter, origin_ns, *slices);
        JsonWriter json;
        json.object();
        json.member("session", session.id());
        json.member("data_version", head.data_version);
        json.member("known", states.known);
        json.member("start_ms", ms(states.start_ns - std::min(states.start_ns, origin_ns)));
        json.member("end_ms", ms(states.end_ns - std::min(states.end_ns, origin_ns)));
        json.list("threads", states.threads, [&](const profile::ThreadStates& one) {
            json.object();
            write_thread(json, store.threads()[one.thread]);
            for (std::size_t state = 0; state < wire::thread_states; ++state)
                json.member(profile::thread_state_names[state], one.sums[state] / 1e6);
            if (*slices != 0)
                for (std::size_t state = 0; state < wire::thread_states; ++state)
                    json.list(fmt::format("{}_slices", profile::thread_state_names[state]), one.slices,
                              [&](const profile::StateTimes& slice) { json.number(slice[state] / 1e6); });
            json.end_object();
        });
        json.end_object();
        return json_answer(json.take());
    });
}

Answer scheduling_answer(const Session& session, const Request& request) {
    return with_view(session, request, [&](const profile::Store& store, const views::View& view, const ViewHead& head) {
        const auto list = profile::scheduling(store, view.filter);
        wire::ThreadTimes all;
        for (const profile::Scheduling& one : list) all.add(one.times);
        JsonWriter json;
        json.object();
        json.member("session", session.id());
        json.member("data_version", head.data_version);
        json.member("known", store.thread_times().end_ns() != 0);
        json.key("all");
        json.object();
        write_times(json, all);
        json.end_object();
        json.list("threads", list, [&](const profile::Scheduling& one) {
            json.object();
            write_thread(json, store.threads()[one.thread]);
            write_times(json, one.times);
            json.end_object();
        });
        json.end_object();
        return json_answer(json.take());
    });
}

}  // namespace flamewire::server
