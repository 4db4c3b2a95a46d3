// A day of history: replays 24 hours quickly into a session, and measures its memory and the time of the page's
// requests for random windows between a second and the whole day. Fails unless the answers report all coarsening, and
// all sums equal what was sent. Prints one JSON object per line: {"figure", "value", "unit", "bar", "peer"}; bar may be
// null.
#include <fmt/format.h>
#include <malloc.h>
#include <rapidjson/document.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <optional>
#include <random>

#include "../figure.h"
#include "profile/store/tables.h"
#include "recorded_day.h"
#include "server/http/counter_answers.h"
#include "server/http/health_answers.h"
#include "server/http/profile_answers.h"
#include "server/http/timeline_answers.h"
#include "server/session/session.h"

namespace flamewire::bench {

namespace {

constexpr double answer_bar_ms = 50;
// With --smoke the day has one hour, the row limit is lower, and there are only a few windows.
std::uint64_t day_s = 86'400;
double day_ms = 86'400e3;
std::size_t windows = 60, repeats = 3;
server::SessionLimits session_limits;
bool smoke = false;

using Clock = std::chrono::steady_clock;
using server::Answer;
using server::Request;
using server::Session;

void print(std::string_view figure, double value, std::string_view unit, std::optional<double> bar = {},
           std::string_view peer = "") {
    bench::print(Figure{fmt::format("day: {}", figure), value, std::string(unit), bar, std::string(peer)});
}

void require(bool condition, std::string_view what) {
    if (condition) return;
    fmt::print(stderr, "bench_day: {}\n", what);
    std::exit(1);
}

double heap_mib() {
    ::malloc_trim(0);
    const struct mallinfo2 info = ::mallinfo2();
    return static_cast<double>(info.uordblks + info.hblkhd) / (1 << 20);
}

double mib(std::size_t bytes) { return static_cast<double>(bytes) / (1 << 20); }

double ms_since(Clock::time_point begin) {
    return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

rapidjson::Document parsed(const Answer& answer) {
    require(answer.status == 200, answer.body);
    rapidjson::Document document;
    document.Parse(answer.body.data(), answer.body.size());
    require(!document.HasParseError(), "an answer is not JSON");
    return document;
}

std::uint64_t sum_of(const rapidjson::Value& list) {
    std::uint64_t sum = 0;
    for (const auto& element : list.GetArray()) sum += element.GetUint64();
    return sum;
}

// --- the day ---

struct Recorded {
    RecordedDay day;
    std::shared_ptr<Session> session;
};

void give(Session& session, const wire::Frame& frame, std::int64_t arrival_ns) {
    const bool batch = frame.flag == wire::Flag::batch || frame.flag == wire::Flag::batch_zstd;
    const bool taken = batch ? session.ingest(frame.flag, frame.payload, arrival_ns).has_value()
                             : session.append(frame.flag, frame.payload, arrival_ns).has_value();
    require(taken, "a frame was refused");
}

// Replays the day, and prints the time that the session took.
void record(Recorded& recorded) {
    double total_ms = 0, longest_ms = 0;
    std::int64_t arrival_ns = 1'800'000'000'000'000'000;
    const auto timed = [&](const wire::Frame& frame) {
        const auto begin = Clock::now();
        give(*recorded.session, frame, arrival_ns);
        const double ms = ms_since(begin);
        total_ms += ms;
        longest_ms = std::max(longest_ms, ms);
    };
    timed(recorded.day.tables());
    for (std::uint64_t batch = 0; batch < day_s * RecordedDay::batches_per_s; ++batch) {
        arrival_ns += static_cast<std::int64_t>(ns_per_s / RecordedDay::batches_per_s);
        timed(recorded.day.batch(batch));
        if (batch % (2 * RecordedDay::batches_per_s) == 0)
            for (const wire::Frame& frame : recorded.day.health(batch / RecordedDay::batches_per_s)) timed(frame);
    }
    recorded.session->status().publish(true);
    print("frames taken, longest", longest_ms, "ms", {}, fmt::format("all of them {:.1f} s", total_ms / 1e3));
}

void print_memory(const Session& session, double heap_before_mib) {
    print("heap of the session", heap_mib() - heap_before_mib, "MiB");
    session.read([](const profile::Store& store) {
        print("heap of rows", mib(store.tables().rows.memory_bytes()), "MiB", {},
              fmt::format("{} rows, at most {}", store.row_count(), session_limits.store.max_rows));
        std::size_t points = 0;
        for (const auto& series : store.counters().series()) points += series.points.size();
        print("heap of counters", mib(store.counters().memory_bytes()), "MiB", {},
              fmt::format("{} intervals, at most 200000", points));
        print("heap of marks", mib(store.marks().memory_bytes()), "MiB", {}, "at most 20000 per kind");
        print("heap of processes and threads", mib(store.processes().size_bytes() + store.threads().size_bytes()),
              "MiB", {}, fmt::format("{} processes; no limit", store.processes().size() - 1));
        return 0;
    });
    std::size_t frames = 0;
    for (const char* type : {"system", "process", "network", "agent"})
        frames += session.health().between(type, 0, ~std::uint64_t{0}).size();
    print("heap of health", mib(session.health().memory_bytes()), "MiB", {},
          fmt::format("{} frames, at most 3600 per type", frames));
}

// --- what the answers must say ---

Request request(std::initializer_list<std::pair<const std::string, std::string>> query) {
    Request request;
    request.method = "GET";
    request.query = {query};
    return request;
}

// Returns the time (ms) after which samples are not coarsened.
double check_session(const Recorded& recorded) {
    const server::SessionInfo info = recorded.session->info();
    const RecordedDay::Sent& sent = recorded.day.sent();
    std::uint64_t dropped = 0, coarsened = 0, lost = 0;
    double coarsened_until_ms = 0;
    for (const server::LossInfo& loss : info.losses) {
        if (loss.reason == "memory_limit") dropped += loss.count;
        if (loss.reason == "ring_full") lost += loss.count;
        if (loss.reason != "time_coarsened") continue;
        coarsened += loss.count;
        coarsened_until_ms = std::max(coarsened_until_ms, loss.last_ms);
    }
    require(info.samples == sent.samples && dropped == 0, "samples of the day were dropped");
    require(lost == sent.lost, "the losses of the target are not what it stated");
    require(info.duration_ms == day_ms, "the session is not a day long");
    require(info.retention && info.retention->coarse_rows > 0, "nothing was coarsened, so this tests nothing");
    const double whole_from_ms = info.retention->whole_from_ms;
    require(whole_from_ms > day_ms / 2 && whole_from_ms < day_ms - 60e3,
            "whole_from_ms is not the start of the full detail");
    require(std::abs(coarsened_until_ms - whole_from_ms) <= 100e3, "the coarsened time is not stated as such");
    // Each coarsened sample is counted once, and later samples are not coarsened.
    const double per_ms = static_cast<double>(sent.samples) / day_ms;
    require(std::abs(static_cast<double>(coarsened) / per_ms - whole_from_ms) <= 100e3,
            "the coarsened samples are not stated as such");
    return whole_from_ms;
}

void check_answers(const Recorded& recorded) {
    const Session& session = *recorded.session;
    const RecordedDay::Sent& sent = recorded.day.sent();
    const std::uint64_t samples = session.info().samples;

    const auto tree = parsed(flamegraph_answer(session, request({{"min_share", "0"}})));
    require(tree["total"]["samples"].GetUint64() == samples, "the flame graph of the day lacks samples");

    const auto timeline = parsed(timeline_answer(session, request({{"bucket", "100000"}, {"by", "thread"}})));
    require(sum_of(timeline["samples"]) == samples, "the timeline of the day lacks samples");
    require(timeline["session_end_ms"].GetDouble() == day_ms, "session_end_ms is not the end of the day");
    std::uint64_t in_rows = 0, begins = 0, exits = 0, lost = 0;
    for (const auto& row : timeline["rows"].GetArray()) in_rows += sum_of(row["samples"]);
    require(in_rows == samples, "the threads of the day lack samples");
    for (const auto& mark : timeline["marks"].GetArray()) {
        const std::string_view kind = mark["kind"].GetString();
        const std::uint64_t count = mark["count"].GetUint64();
        (kind == "begin" ? begins : kind == "exit" ? exits : kind == "loss" ? lost : in_rows) += count;
    }
    const auto coarse = timeline["coarse"].GetArray();
    const double whole_from_ms = session.info().retention->whole_from_ms;
    require(!coarse.Empty() && coarse[0]["start_ms"].GetDouble() == 0,
            "the timeline does not report coarsening from the start");
    require(coarse[coarse.Size() - 1]["end_ms"].GetDouble() == whole_from_ms,
            "the timeline and the session disagree on whole_from_ms");
    for (const auto& stretch : coarse)
        require(!stretch["dropped"].GetBool() && stretch["bucket_ms"].GetDouble() <= 1e6, "a stretch is too coarse");
    const auto last_minute = parsed(timeline_answer(session, request({{"start", fmt::format("{}", day_ms - 60e3)}})));
    require(last_minute["coarse"].Empty(), "the last minute is reported as coarse");
    require(begins == sent.begins && exits == sent.exits, "marks of processes are missing");
    require(lost == sent.lost, "marks of losses are missing");

    const auto counters = parsed(counters_answer(session, request({{"slices", "400"}})));
    // The counters of an hour fit into the limit.
    require(counters.HasMember("coarse_until_ms") != smoke, "coarsened counters are not stated as such");
    const double coarse_until_ms = smoke ? 0 : counters["coarse_until_ms"].GetDouble();
    require(smoke || (coarse_until_ms > 0 && coarse_until_ms < day_ms), "coarse_until_ms is not within the day");
    require(counters["groups"].Size() == 1, "there must be one group of counters");
    for (const auto& counter : counters["groups"][0]["counters"].GetArray()) {
        if (std::string_view(counter["name"].GetString()) == "instructions")
            require(counter["value"].GetDouble() == static_cast<double>(sent.instructions),
                    "the sum of a counter differs from what was sent");
        // An interval spans at most two of the 400 slices, also in the coarse part.
        const auto& series = counter["series"];
        for (rapidjson::SizeType i = 0; i < series["end_ms"].Size(); ++i)
            require(series["end_ms"][i].GetDouble() - series["start_ms"][i].GetDouble() <= day_ms / 200,
                    "the counters of a part of the day are too coarse");
    }
    print("counters in full detail, newest", (day_ms - coarse_until_ms) / 60e3, "min");

    const auto health = parsed(metrics_history_answer(session, request({{"slices", "400"}})));
    require(health.Size() >= 200 && health.Size() <= 400, "the health of the day is not in 400 steps");
    const auto time_ms = [&](const rapidjson::Value& frame) {
        return static_cast<double>(frame["mono_ns"].GetUint64() - session.status().start_ns()) / 1e6;
    };
    const auto list = health.GetArray();
    require(time_ms(list[0]) <= 10e3, "the beginning has no health");
    require(time_ms(list[list.Size() - 1]) >= day_ms - day_ms / 200, "the end has no health");
    for (rapidjson::SizeType i = 1; i < list.Size(); ++i)
        require(time_ms(list[i]) - time_ms(list[i - 1]) <= day_ms / 100, "the health of a part of the day is missing");
}

// --- how long answers take ---

struct Window {
    double start_ms = 0, end_ms = 0;
};

// The day, and windows of a second up to a day, with lengths distributed evenly on a logarithmic scale.
std::vector<Window> random_windows() {
    std::mt19937_64 random(42);
    const auto share = [&] { return static_cast<double>(random() >> 11) / 9007199254740992.0; };
    std::vector<Window> result{{0, day_ms}};
    while (result.size() < windows) {
        const double length_ms = 1e3 * std::pow(day_ms / 1e3, share());
        const double start_ms = share() * (day_ms - length_ms);
        result.push_back({start_ms, start_ms + length_ms});
    }
    return result;
}

// The bucket that the page requests: at most 400 slices, with a round width.
double bucket_ms(const Window& window) {
    double bucket = 10;
    while ((window.end_ms - window.start_ms) / bucket > 400)
        bucket *= bucket / std::pow(10, std::floor(std::log10(bucket))) > 4 ? 2 : 2.5;
    return bucket;
}

// The best of some repetitions, to exclude other load. The bar applies to the slowest window.
void time_answers(std::string_view name, const Session& session,
                  const std::function<Answer(const Session&, Request)>& answer) {
    std::vector<double> times;
    std::size_t most_bytes = 0;
    for (const Window& window : random_windows()) {
        Request asked =
            request({{"start", fmt::format("{}", window.start_ms)}, {"end", fmt::format("{}", window.end_ms)}});
        asked.query["bucket"] = fmt::format("{}", bucket_ms(window));
        double best_ms = 1e9;
        for (std::size_t i = 0; i < repeats; ++i) {
            const auto begin = Clock::now();
            const Answer answered = answer(session, asked);
            best_ms = std::min(best_ms, ms_since(begin));
            require(answered.status == 200, answered.body);
            most_bytes = std::max(most_bytes, answered.body.size());
        }
        times.push_back(best_ms);
    }
    std::ranges::sort(times);
    print(fmt::format("{}, slowest of {} windows", name, windows), times.back(), "ms", answer_bar_ms,
          fmt::format("median {:.2f} ms; largest answer {:.0f} KiB", times[times.size() / 2],
                      static_cast<double>(most_bytes) / 1024));
}

Answer with(Answer (*answer)(const Session&, const Request&), const Session& session, Request asked,
            std::initializer_list<std::pair<const char*, const char*>> more, bool bucket = false) {
    if (!bucket) asked.query.erase("bucket");
    for (const auto& [name, value] : more) asked.query[name] = value;
    return answer(session, asked);
}

void time_all(const Session& session) {
    time_answers("flame graph", session,
                 [](const Session& s, Request r) { return with(server::flamegraph_answer, s, std::move(r), {}); });
    time_answers("timeline", session,
                 [](const Session& s, Request r) { return with(server::timeline_answer, s, std::move(r), {}, true); });
    time_answers("timeline by thread", session, [](const Session& s, Request r) {
        return with(server::timeline_answer, s, std::move(r), {{"by", "thread"}}, true);
    });
    time_answers("counters", session, [](const Session& s, Request r) {
        return with(server::counters_answer, s, std::move(r), {{"slices", "400"}});
    });
    time_answers("health", session, [](const Session& s, Request r) {
        return with(server::metrics_history_answer, s, std::move(r), {{"slices", "400"}});
    });
}

void run(const std::string& directory) {
    const double heap_before_mib = heap_mib();
    Recorded recorded;
    const double heap_generator_mib = heap_mib() - heap_before_mib;
    recorded.session =
        Session::create("day", directory + "/stream.flw", recorded.day.recording_id(), session_limits).value();
    record(recorded);
    print_memory(*recorded.session, heap_before_mib + heap_generator_mib);
    print("samples in full detail, newest", (day_ms - check_session(recorded)) / 60e3, "min", {}, "none dropped");
    check_answers(recorded);
    time_all(*recorded.session);

    recorded.session.reset();
    const auto begin = Clock::now();
    recorded.session = Session::load("day", directory + "/stream.flw", session_limits).value();
    print("loaded from disk", ms_since(begin) / 1e3, "s", {},
          fmt::format("{:.0f} MiB", mib(std::filesystem::file_size(directory + "/stream.flw"))));
    (void)check_session(recorded);
}

}  // namespace

}  // namespace flamewire::bench

int main(int argc, char** argv) {
    using namespace flamewire::bench;
    smoke = take_smoke(argc, argv);
    if (argc != 2) {
        fmt::print(stderr, "Usage: bench_day DIRECTORY [--smoke] (an empty folder, for the session file)\n");
        return 2;
    }
    if (smoke) {
        day_s = 3'600;
        day_ms = 3'600e3;
        windows = 4;
        repeats = 1;
        session_limits.store.max_rows = 80'000;
    }
    run(argv[1]);
    return 0;
}
