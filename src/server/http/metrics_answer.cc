#include "server/http/metrics_answer.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <sstream>

#include "base/file.h"
#include "server/limits.h"
#include "wire/control.h"

namespace flamewire::server {
namespace {

using Labels = std::vector<std::pair<std::string_view, std::string_view>>;

// Writes help and type of a metric once, before its samples.
class Metrics {
public:
    void begin(std::string_view name, std::string_view type, std::string_view help) {
        name_ = name;
        out_ += fmt::format("# HELP {} {}\n# TYPE {} {}\n", name, help, name, type);
    }
    template <class Number>
    void sample(const Labels& labels, Number value) {
        out_ += name_;
        char separator = '{';
        for (const auto& [name, text] : labels) {
            out_ += fmt::format("{}{}=\"", std::exchange(separator, ','), name);
            append_escaped(text);
            out_ += '"';
        }
        if (!labels.empty()) out_ += '}';
        out_ += fmt::format(" {}\n", value);
    }
    template <class Number>
    void one(std::string_view name, std::string_view type, std::string_view help, Number value) {
        begin(name, type, help);
        sample({}, value);
    }
    std::string take() { return std::move(out_); }

private:
    void append_escaped(std::string_view text) {
        for (const char c : text) {
            if (c == '\\' || c == '"') out_ += '\\';
            if (c == '\n')
                out_ += "\\n";
            else
                out_ += c;
        }
    }
    std::string out_, name_;
};

double cpu_seconds() {
    rusage usage{};
    ::getrusage(RUSAGE_SELF, &usage);
    const auto seconds = [](const timeval& time) {
        return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
    };
    return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

std::uint64_t resident_bytes() {
    std::istringstream words(read_file("/proc/self/statm", 256).value_or(""));
    std::uint64_t size = 0, resident = 0;
    words >> size >> resident;
    return resident * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

std::uint64_t open_descriptors() {
    std::uint64_t count = 0;
    std::error_code error;
    std::filesystem::directory_iterator at("/proc/self/fd", error);
    for (; !error && at != std::filesystem::directory_iterator(); at.increment(error)) ++count;
    return count;
}

void put_server(Metrics& out, const MetricsFacts& facts) {
    out.begin("flamewire_build_info", "gauge", "The version of this server.");
    out.sample({{"version", FLAMEWIRE_VERSION}}, 1);
    out.one("flamewire_uptime_seconds", "gauge", "Time since the server started.",
            std::chrono::duration<double>(std::chrono::steady_clock::now() - facts.started).count());
    out.one("process_cpu_seconds_total", "counter", "CPU time of the server, user and system.", cpu_seconds());
    out.one("process_resident_memory_bytes", "gauge", "Resident memory of the server.", resident_bytes());
    out.one("process_open_fds", "gauge", "Open file descriptors of the server.", open_descriptors());
}

// Only sessions that are live or whose agent may return: ended ones are loaded and unloaded.
void put_sessions(Metrics& out, const MetricsFacts& facts) {
    std::vector<SessionInfo> live;
    std::uint64_t memory_bytes = 0;
    for (const auto& session : facts.sessions) {
        SessionInfo info = session->info();
        if (info.retention) memory_bytes += info.retention->memory_bytes;
        if (info.state != SessionState::ended) live.push_back(std::move(info));
    }
    out.one("flamewire_sessions_loaded", "gauge", "Sessions in memory.", facts.sessions.size());
    out.one("flamewire_sessions_memory_bytes", "gauge", "Memory of the rows and trees of sessions.", memory_bytes);
    out.one("flamewire_sessions_live", "gauge", "Sessions that an agent feeds or may continue.", live.size());
    const auto each = [&](std::string_view name, std::string_view type, std::string_view help, auto value) {
        out.begin(name, type, help);
        for (const SessionInfo& info : live) out.sample({{"session", info.id}, {"target", info.target}}, value(info));
    };
    each("flamewire_session_samples_total", "counter", "Samples of a live session, all events.",
         [](const SessionInfo& info) { return info.samples; });
    each("flamewire_session_lost_samples_total", "counter", "Samples of a live session that no view shows.",
         [](const SessionInfo& info) { return info.lost; });
    each("flamewire_session_stream_bytes", "gauge", "Size of a live session's file.",
         [](const SessionInfo& info) { return info.size_bytes; });
    each("flamewire_session_rows", "gauge", "Rows of a live session in memory.",
         [](const SessionInfo& info) { return info.retention ? info.retention->rows : 0; });
}

void put_limits(Metrics& out) {
    out.begin("flamewire_limit_reached_total", "counter", "How often a limit of this server was reached.");
    for (std::size_t i = 0; i < limit_count; ++i)
        out.sample({{"limit", limit_names[i]}}, times_reached(static_cast<Limit>(i)));
}

void put_agents(Metrics& out, const MetricsFacts& facts) {
    struct Reporting {
        const AgentInfo* agent;
        std::string host;
    };
    std::vector<Reporting> connected;
    for (const AgentPtr& agent : facts.agents) {
        if (!agent->connected) continue;
        const auto hello = wire::parse_hello(agent->hello);
        connected.push_back({agent.get(), hello ? hello->platform.hostname : std::string{}});
    }
    out.one("flamewire_agents_connected", "gauge", "Agents that are connected.", connected.size());
    const auto each = [&](std::string_view name, std::string_view type, std::string_view help, auto value) {
        out.begin(name, type, help);
        for (const Reporting& it : connected)
            if (it.agent->stats) out.sample({{"agent", it.agent->id}, {"host", it.host}}, value(*it.agent));
    };
    each("flamewire_agent_cpu_ratio", "gauge", "CPU time that an agent uses, of one CPU.",
         [](const AgentInfo& agent) { return agent.cpu_percent / 100; });
    each("flamewire_agent_resident_memory_bytes", "gauge", "Resident memory of an agent.",
         [](const AgentInfo& agent) { return agent.stats->rss_bytes; });
    each("flamewire_agent_spool_bytes", "gauge", "What an agent keeps until it is acknowledged.",
         [](const AgentInfo& agent) { return agent.stats->spool_bytes; });
    each("flamewire_agent_samples_read_total", "counter", "Samples that an agent read from the kernel.",
         [](const AgentInfo& agent) { return agent.stats->samples_read; });
    each("flamewire_agent_samples_lost_total", "counter", "Samples that an agent could not keep.",
         [](const AgentInfo& agent) { return agent.stats->samples_lost; });
    each("flamewire_agent_latency_seconds", "gauge", "From the end of a batch on the target to its arrival here.",
         [](const AgentInfo& agent) { return agent.latency_ms.value_or(0) / 1000; });
}

}  // namespace

Answer metrics_answer(const MetricsFacts& facts) {
    Metrics out;
    put_server(out, facts);
    put_sessions(out, facts);
    put_agents(out, facts);
    put_limits(out);
    Answer answer;
    answer.content_type = "text/plain; version=0.0.4; charset=utf-8";
    answer.body = out.take();
    return answer;
}

}  // namespace flamewire::server
