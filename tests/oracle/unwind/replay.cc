// Unwinds every sample of a perf.data file and prints its frames in a format that is comparable with `perf script`.
// Usage: replay FILE [--map NAME=PATH]... [--max-depth N] [--runtime] [--as-perf-reads] [--lbr] [--by-libunwind] [--no-libunwind] [--counts]
//
// One line per sample, tab-separated: tid, time in ns, stop reason, frames. A frame has the format of `perf script -F ip,dso`: the
// address in the kernel, otherwise the offset in the mapped file; for a caller that of its call, one byte below the return
// address; then a colon and the file. Kernel frames come first. --runtime prints runtime addresses,
// --counts only totals. --as-perf-reads omits the last byte of each copy, because perf 6.1 never reads the last word.
// --lbr uses the last branch records as the stack. --by-libunwind makes every step with libunwind, as our walk does when
// it needs libunwind.
#include <fmt/format.h>

#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

#include "base/file.h"
#include "samples.h"
#include "unwind/frame/stop_reason.h"
#include "unwind/tables/module_tables.h"
#include "unwind/tables/page_cache.h"
#include "unwind/walk/branch_stack.h"
#include "unwind/walk/libunwind_step.h"
#include "unwind/walk/unwinder.h"

namespace {

using namespace flamewire;

struct Options {
    std::string file;
    std::map<std::string, std::string, std::less<>> elsewhere;
    std::size_t max_depth = unwind::highest_max_depth;
    bool libunwind = true;
    bool runtime = false;
    bool as_perf_reads = false;
    bool lbr = false;
    bool by_libunwind = false;
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
        } else if (argument == "--runtime") {
            options.runtime = true;
        } else if (argument == "--as-perf-reads") {
            options.as_perf_reads = true;
        } else if (argument == "--lbr") {
            options.lbr = true;
        } else if (argument == "--by-libunwind") {
            options.by_libunwind = true;
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

struct Walked {
    std::string_view stop = "no_stack";
    std::vector<std::uint64_t> addresses;  // as perf prints them
};

Walked walk(const Options& options, const perf_data::Recording& recording, const perf_data::Sample& sample,
            unwind::CodeMap& map, unwind::Unwinder& unwinder) {
    Walked walked;
    auto start = perf_data::start_of(recording, sample);
    if (!start) return walked;
    if (options.as_perf_reads) start->stack.bytes = start->stack.bytes.first(start->stack.bytes.size() - 1);
    std::vector<unwind::Frame> frames;
    walked.stop = unwind::name_of(unwinder.walk(start->registers, start->stack, map, options.max_depth, frames));
    for (const unwind::Frame& frame : frames) walked.addresses.push_back(frame.code_address().lookup());
    return walked;
}

Walked from_branches(const perf_data::Sample& sample) {
    Walked walked;
    const std::vector<std::uint64_t> chain = perf_data::user_chain(sample);
    if (chain.empty()) return walked;
    // With precise events, the sampled instruction differs from the place where the chain was taken.
    const std::uint64_t pc = sample.user_mode ? sample.ip : chain.front();
    std::vector<unwind::Branch> branches;
    for (const perf_data::Branch& branch : sample.branches) branches.push_back({branch.from, branch.to});
    bool cut = false;
    for (const CodeAddress& address : unwind::frames_of_branches(pc, branches, chain, 0, cut))
        walked.addresses.push_back(address.lookup());
    walked.stop = cut ? "cut" : "branches_end";
    return walked;
}

// Complete walks with LibunwindStep, which our walk uses for single steps.
class ByLibunwind {
public:
    explicit ByLibunwind(perf_data::Processes& processes) : processes_(processes) {}

    Walked walk(const perf_data::Start& start, unwind::CodeMap& map, std::size_t max_depth) {
        Walked walked{.stop = "max_depth", .addresses = {}};
        unwind::Registers registers = start.registers;
        const unwind::MemoryReader read = [&](std::uint64_t address, std::size_t size) -> std::optional<std::uint64_t> {
            const std::uint64_t offset = address - start.stack.address;
            if (size > 8 || offset > start.stack.bytes.size() || start.stack.bytes.size() - offset < size)
                return std::nullopt;
            std::uint64_t value = 0;
            std::memcpy(&value, start.stack.bytes.data() + offset, size);
            return value;
        };
        while (walked.addresses.size() < max_depth) {
            const bool caller = !walked.addresses.empty();
            const std::uint64_t address = registers.pc() - (caller ? 1 : 0);
            walked.addresses.push_back(address);
            const auto piece = map.find(address);
            unwind::ModuleTables* module = piece ? tables(piece->module) : nullptr;
            work_.begin_stack();
            const auto next =
                module != nullptr ? step_.step(registers, caller, *piece, *module, read, work_) : std::nullopt;
            if (!next || !next->has(unwind::register_names(registers.arch()).pc)) {
                walked.stop = next ? "root" : "no_step";
                break;
            }
            registers = *next;
        }
        return walked;
    }

private:
    unwind::ModuleTables* tables(unwind::ModuleId id) {
        const auto known = tables_.find(id);
        if (known != tables_.end()) return known->second.get();
        std::unique_ptr<unwind::ModuleTables>& module = tables_[id];
        if (Result<elf::ByteSource> source = processes_.open(id))
            if (auto opened = unwind::ModuleTables::open(id, *std::move(source), pages_, work_))
                module = *std::move(opened);
        return module.get();
    }

    perf_data::Processes& processes_;
    unwind::PageCache pages_{std::size_t{32} << 20};
    unwind::TableWork work_;
    std::map<unwind::ModuleId, std::unique_ptr<unwind::ModuleTables>> tables_;
    unwind::LibunwindStep step_;
};

Walked walk_by_libunwind(ByLibunwind& by_libunwind, const Options& options, const perf_data::Recording& recording,
                         const perf_data::Sample& sample, unwind::CodeMap& map) {
    const auto start = perf_data::start_of(recording, sample);
    return start ? by_libunwind.walk(*start, map, options.max_depth) : Walked{};
}

Result<bool> run(const Options& options) {
    const std::string bytes = TRY(read_file(options.file, std::size_t{4} << 30));
    const perf_data::Recording recording = TRY(perf_data::read_recording(as_bytes_view(bytes)));
    perf_data::Processes processes(options.elsewhere);
    unwind::Unwinder unwinder(processes, {.use_libunwind = options.libunwind});
    ByLibunwind by_libunwind(processes);
    perf_data::replay(recording, processes, [&](const perf_data::Sample& sample) {
        unwind::CodeMap& map = processes.space_of(sample.pid);
        const Walked walked = options.lbr            ? from_branches(sample)
                              : options.by_libunwind ? walk_by_libunwind(by_libunwind, options, recording, sample, map)
                                                     : walk(options, recording, sample, map, unwinder);
        if (options.counts) return;
        fmt::print("{}\t{}\t{}", sample.tid, sample.time_ns, walked.stop);
        for (const std::uint64_t address : perf_data::kernel_chain(sample)) fmt::print("\t{:x}:kernel", address);
        for (const std::uint64_t address : walked.addresses) {
            const auto place = processes.place_of(sample.pid, address);
            fmt::print("\t{:x}:{}", place && !options.runtime ? place->file_offset : address,
                       place ? place->path : "[unknown]");
        }
        fmt::print("\n");
    });
    if (options.counts) print_counts(unwinder);
    return true;
}

}  // namespace

int main(int argc, char** argv) {
    Options options;
    if (!parse_options(argc, argv, options)) {
        fmt::print(stderr,
                   "usage: replay FILE [--map NAME=PATH]... [--max-depth N] [--runtime] [--as-perf-reads] "
                   "[--no-libunwind] [--counts]\n");
        return 2;
    }
    const Result<bool> outcome = run(options);
    if (!outcome) fmt::print(stderr, "replay: {}\n", outcome.error().message);
    return outcome ? 0 : 1;
}
