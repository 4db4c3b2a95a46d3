// Walks every sample of a perf.data file and prints its frames in a form that compares with `perf script`.
// Usage: replay FILE [--map RECORDED=HERE]... [--max-depth N] [--no-libunwind] [--counts]
//
// A line a sample: tid, time in ns, stop reason, frames. A frame is the address that `perf script` shows: of a caller
// that of its call, one byte below the return address. Kernel frames come first. --counts prints totals instead.
#include <fmt/format.h>

#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

#include "base/file.h"
#include "samples.h"
#include "unwind/stop_reason.h"
#include "unwind/unwinder.h"

namespace {

using namespace flamewire;

struct Options {
    std::string file;
    std::map<std::string, std::string, std::less<>> elsewhere;
    std::size_t max_depth = unwind::highest_max_depth;
    bool libunwind = true;
    bool counts = false;
};

bool parse_options(int argc, char** argv, Options& options) {
    for (int i = 1; i < argc; ++i) {
        const std::string_view argument = argv[i];
        const char* value = i + 1 < argc ? argv[i + 1] : nullptr;
        if (argument == "--map" && value != nullptr && std::strchr(value, '=') != nullptr) {
            const std::string_view pair = argv[++i];
            options.elsewhere.emplace(pair.substr(0, pair.find('=')), pair.substr(pair.find('=') + 1));
        } else if (argument == "--max-depth" && value != nullptr) {
            options.max_depth = std::strtoul(argv[++i], nullptr, 10);
        } else if (argument == "--no-libunwind") {
            options.libunwind = false;
        } else if (argument == "--counts") {
            options.counts = true;
        } else if (!argument.starts_with('-') && options.file.empty()) {
            options.file = argument;
        } else {
            return false;
        }
    }
    return !options.file.empty();
}

void print_counts(const unwind::Unwinder& unwinder) {
    const unwind::Unwinder::Counts& counts = unwinder.counts();
    fmt::print("walks {}\nframes {}\nrules_compiled {}\nmemory_bytes {}\n", counts.walks, counts.frames,
               counts.rules_compiled, unwinder.memory_bytes());
    for (std::size_t i = 0; i < unwind::stop_reasons; ++i)
        fmt::print("stopped {} {}\n", unwind::name_of(static_cast<unwind::StopReason>(i)), counts.stopped[i]);
    constexpr std::array<const char*, unwind::ways_to_find> ways{
        "registers", "rule", "expression", "signal", "libunwind", "frame_pointer", "link_register", "chain", "joined"};
    for (std::size_t i = 0; i < ways.size(); ++i) fmt::print("found {} {}\n", ways[i], counts.found[i]);
}

Result<bool> run(const Options& options) {
    const std::string bytes = TRY(read_file(options.file, std::size_t{4} << 30));
    const perf_data::Recording recording = TRY(perf_data::read_recording(as_bytes_view(bytes)));
    perf_data::Processes processes(options.elsewhere);
    unwind::Unwinder unwinder(processes, {.use_libunwind = options.libunwind});
    std::vector<unwind::Frame> frames;
    std::string text;
    perf_data::replay(recording, processes, [&](const perf_data::Sample& sample) {
        std::string_view stop = "no_stack";
        frames.clear();
        if (const auto start = perf_data::start_of(recording, sample))
            stop = unwind::name_of(unwinder.walk(start->registers, start->stack, processes.space_of(sample.pid),
                                                 options.max_depth, frames));
        if (options.counts) return;
        text = fmt::format("{} {} {}", sample.tid, sample.time_ns, stop);
        for (const std::uint64_t address : perf_data::kernel_chain(sample)) text += fmt::format(" {:x}", address);
        for (const unwind::Frame& frame : frames) text += fmt::format(" {:x}", frame.pc - (frame.return_address ? 1 : 0));
        fmt::print("{}\n", text);
    });
    if (options.counts) print_counts(unwinder);
    return true;
}

}  // namespace

int main(int argc, char** argv) {
    Options options;
    if (!parse_options(argc, argv, options)) {
        fmt::print(stderr, "usage: replay FILE [--map RECORDED=HERE]... [--max-depth N] [--no-libunwind] [--counts]\n");
        return 2;
    }
    const Result<bool> outcome = run(options);
    if (!outcome) fmt::print(stderr, "replay: {}\n", outcome.error().message);
    return outcome ? 0 : 1;
}
