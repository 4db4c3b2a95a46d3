// Replays a capture and writes the batches to a session file, which flamewire and flamewire-server can open.
//
//   capture-replay CAPTURE [--output SESSION] [--summary FILE] [--times N]
//
// With --times, all replays must be equal. Exit codes: 0 success; 1 the capture cannot be replayed, or replays differ;
// 2 wrong usage.
#include <fmt/format.h>

#include <charconv>
#include <cstdio>
#include <span>
#include <string>
#include <string_view>

#include "agent/hello.h"
#include "base/clock.h"
#include "base/file.h"
#include "replay/replay.h"
#include "replay/summary.h"
#include "wire/control.h"
#include "wire/session_file.h"

namespace {

using namespace flamewire;

// The content of a session file.
struct Session {
    wire::Hello hello;
    std::vector<std::string> batches;
};

Session session_of(replay::Replayed done) {
    Session session{agent::make_hello("replay", done.machine, done.capabilities, "profiling"), {}};
    if (!done.batches.empty()) session.hello.recording = wire::Hello::Kept{done.batches.front().recording_id, 1, 0};
    for (std::size_t i = 0; i < done.batches.size(); ++i) {
        session.batches.push_back(wire::encode(done.batches[i], done.periods[i]));
    }
    return session;
}

Result<bool> write(const std::string& path, const Session& session) {
    auto writer = TRY(wire::SessionWriter::create(path));
    (void)TRY(writer.append(realtime_ns(), wire::Flag::reply, wire::encode_hello(session.hello)));
    for (const std::string& batch : session.batches) {
        const wire::Frame frame = wire::batch_frame(batch);
        (void)TRY(writer.append(realtime_ns(), frame.flag, frame.payload));
    }
    return true;
}

int failed(std::string_view why) {
    fmt::print(stderr, "capture-replay: {}\n", why);
    return 1;
}

int run(std::span<char*> words) {
    std::string path, output, summary;
    unsigned times = 1;
    for (std::size_t i = 1; i < words.size(); ++i) {
        const std::string_view word = words[i];
        const bool last = i + 1 == words.size();
        if (word == "--output" && !last) {
            output = words[++i];
        } else if (word == "--summary" && !last) {
            summary = words[++i];
        } else if (word == "--times" && !last) {
            const std::string_view number = words[++i];
            std::from_chars(number.data(), number.data() + number.size(), times);
        } else if (path.empty() && !word.starts_with("--")) {
            path = word;
        } else {
            path.clear();
            break;
        }
    }
    if (path.empty() || times == 0) {
        fmt::print(stderr, "usage: capture-replay CAPTURE [--output SESSION] [--summary FILE] [--times N]\n");
        return 2;
    }
    const auto capture = replay::CaptureFile::read(path);
    if (!capture) return failed(capture.error().message);
    if (capture->truncated()) fmt::print("the capture is incomplete: {}\n", *capture->truncated());
    Session first;
    for (unsigned time = 0; time < times; ++time) {
        auto done = replay::replay(*capture);
        if (!done) return failed(done.error().message);
        if (done->refused) return failed("the recording failed to open: " + done->refused->message);
        const replay::Fidelity fits = done->fidelity;
        const std::string account = done->account_line;
        if (time == 0 && done->ended_early && !capture->truncated())
            fmt::print("the capture is incomplete: it ends before the recording does\n");
        std::string summary_text;
        if (time == 0 && !summary.empty())
            for (const std::string& line : replay::summarize(done->batches)) summary_text += line + "\n";
        Session session = session_of(*std::move(done));
        if (time != 0 && session.batches != first.batches) return failed(fmt::format("replay {} differs", time + 1));
        if (time != 0) continue;
        fmt::print("{}\ncalls: {} in order, {} out of order, {} missing\n", account, fits.in_order, fits.out_of_order,
                   fits.missing);
        for (const std::string& call : fits.first_missing) fmt::print("  {}\n", call);
        first = std::move(session);
        if (summary.empty()) continue;
        if (const auto saved = replace_file(summary, as_bytes_view(summary_text), Durable::no, 0644); !saved)
            return failed(saved.error().message);
    }
    if (times > 1) fmt::print("{} replays are equal\n", times);
    if (output.empty()) return 0;
    const auto written = write(output, first);
    return written ? 0 : failed(written.error().message);
}

}  // namespace

int main(int argc, char** argv) { return run(std::span(argv, static_cast<std::size_t>(argc))); }
