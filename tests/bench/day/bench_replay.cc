// Opens a session file of an hour with two busy CPUs at 999 Hz: the time until the first picture, which shows what has
// been read by then, and until the complete picture. Fails if samples are missing there. Prints JSON like bench_day.
#include <fmt/format.h>
#include <rapidjson/document.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "../figure.h"
#include "recorded_day.h"
#include "server/http/profile_answers.h"
#include "server/session/session.h"
#include "wire/session_file.h"

namespace flamewire::bench {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr std::uint32_t frequency_hz = 500;  // of each of four threads
// With --smoke one run with a minute.
std::uint64_t hour_s = 3'600;
std::size_t repeats = 5;

void require(bool condition, std::string_view what) {
    if (condition) return;
    fmt::print(stderr, "bench_replay: {}\n", what);
    std::exit(1);
}

// Returns the number of samples in it.
std::uint64_t write_hour(const std::string& path) {
    auto writer = wire::SessionWriter::create(path);
    require(writer.has_value(), "the session cannot be written");
    RecordedDay hour(frequency_hz);
    std::int64_t arrival_ns = 1'800'000'000'000'000'000;
    const auto put = [&](const wire::Frame& frame) {
        require(writer->append(arrival_ns, frame.flag, frame.payload).has_value(), "the session cannot be written");
    };
    put(hour.tables());
    for (std::uint64_t batch = 0; batch < hour_s * RecordedDay::batches_per_s; ++batch) {
        arrival_ns += static_cast<std::int64_t>(ns_per_s / RecordedDay::batches_per_s);
        put(hour.batch(batch));
        if (batch % (2 * RecordedDay::batches_per_s) == 0)
            for (const wire::Frame& frame : hour.health(batch / RecordedDay::batches_per_s)) put(frame);
    }
    return hour.sent().samples;
}

// The number of samples in the flame graph that the page requests.
std::uint64_t picture(const server::Session& session) {
    server::Request request;
    request.method = "GET";
    const server::Answer answer = flamegraph_answer(session, request);
    rapidjson::Document graph;
    graph.Parse(answer.body.data(), answer.body.size());
    require(!graph.HasParseError(), "the flame graph cannot be read");
    return graph["total"]["samples"].GetUint64();
}

// Both in ms from the start.
struct Opened {
    double first_picture = 0, whole_picture = 0;
};
Opened open_once(const std::string& path, std::uint64_t samples) {
    const auto begin = Clock::now();
    const auto elapsed = [&] { return std::chrono::duration<double, std::milli>(Clock::now() - begin).count(); };
    Opened opened;
    const auto session = server::Session::load("hour", path, {}, [&](const std::shared_ptr<server::Session>& begun) {
        // On a slow machine the first call may come when only tables have been read.
        if (opened.first_picture == 0 && picture(*begun) > 0) opened.first_picture = elapsed();
    });
    require(session.has_value(), "the session does not open");
    require(picture(**session) == samples, "samples are missing");
    opened.whole_picture = elapsed();
    if (opened.first_picture == 0) opened.first_picture = opened.whole_picture;
    return opened;
}

double median(std::vector<double> values) {
    std::ranges::sort(values);
    return values[values.size() / 2];
}

void run() {
    const std::string path = (fs::temp_directory_path() / fmt::format("flamewire-hour-{}.flw", ::getpid())).string();
    const std::uint64_t samples = write_hour(path);
    std::vector<double> first, whole;
    for (std::size_t i = 0; i < repeats; ++i) {
        const Opened opened = open_once(path, samples);
        first.push_back(opened.first_picture);
        whole.push_back(opened.whole_picture);
    }
    const std::string what = fmt::format("replay: {} of {:.1f} M samples", hour_s == 3'600 ? "an hour" : "a minute",
                                         static_cast<double>(samples) / 1e6);
    const std::string how =
        fmt::format("median of {}; {:.1f} MB on disk", repeats, static_cast<double>(fs::file_size(path)) / 1e6);
    print({what + ", until the first picture", median(first), "ms", 1000, how});
    print({what + ", until the complete picture", median(whole), "ms", {}, how});
    fs::remove(path);
}

}  // namespace
}  // namespace flamewire::bench

int main(int argc, char** argv) {
    using namespace flamewire::bench;
    if (take_smoke(argc, argv)) {
        hour_s = 60;
        repeats = 1;
    }
    run();
}
