// Runs a program instruction by instruction and compares the unwinder's frames with the true stack (shadow_stack.h) at
// each instruction.
//   walk_steps ptrace PROGRAM
//   walk_steps emulator QEMU aarch64|arm PROGRAM [RANGES]
// RANGES ("1000-1200,1800-1840", hexadecimal) are the checked code: of a stack, the innermost frames in these ranges and
// their caller. Without RANGES, all code is checked.
// Prints the differences by place, and totals. The exit status is 1 if a frame is wrong.
#include <sys/mman.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/file.h"
#include "elf/elf_file.h"
#include "shadow_stack.h"
#include "target.h"
#include "unwind/walk/unwinder.h"

using namespace flamewire;
using namespace flamewire::steps;
using namespace flamewire::unwind;

namespace {

// The files of the target's mappings.
class Modules final : public ModuleFiles, public CodeMap {
public:
    explicit Modules(Target& target) : target_(target) { refresh(); }

    Result<elf::ByteSource> open(ModuleId module) override {
        return elf::source_of_bytes(as_bytes_view(files_.at(module - 1).bytes));
    }
    std::optional<CodePiece> find(std::uint64_t address) override {
        for (int attempt = 0; attempt < 2; ++attempt) {
            for (const CodePiece& piece : pieces_)
                if (piece.start <= address && address < piece.end) return piece;
            if (attempt == 0 && !refresh()) break;
        }
        return {};
    }
    // "libc.so.6+0x1234"
    std::string place(std::uint64_t address) {
        char text[64];
        const auto piece = find(address);
        std::snprintf(text, sizeof text, "+%#llx",
                      static_cast<unsigned long long>(piece ? address - piece->bias : address));
        if (!piece || piece->module == 0) return std::string("?") + text;
        const std::string& path = files_[piece->module - 1].path;
        return path.substr(path.rfind('/') + 1) + text;
    }
    std::uint64_t entry_of_program(const std::string& path) {
        for (const File& file : files_)
            if (file.path == path) {
                std::uint64_t entry = 0;
                (void)read_at(as_bytes_view(file.bytes), 24, entry);
                for (const CodePiece& piece : pieces_)
                    if (files_[piece.module - 1].path == path) return entry + piece.bias;
            }
        return 0;
    }

private:
    struct File {
        std::string path, bytes;
        std::vector<elf::Segment> segments;
    };

    bool refresh() {
        const auto mappings = target_.mappings();
        std::vector<CodePiece> pieces;
        for (const Mapping& mapping : mappings)
            if (mapping.executable && !mapping.path.empty() && mapping.path != "[vsyscall]") add(mapping, pieces);
        const bool changed = pieces.size() != pieces_.size();
        pieces_ = std::move(pieces);
        return changed;
    }

    void add(const Mapping& mapping, std::vector<CodePiece>& pieces) {
        auto file = std::ranges::find(files_, mapping.path, &File::path);
        if (file == files_.end()) {
            File added{.path = mapping.path, .bytes = {}, .segments = {}};
            if (mapping.path[0] == '[') {
                added.bytes.resize(mapping.end - mapping.start);
                target_.read(mapping.start, std::as_writable_bytes(std::span(added.bytes)));
            } else if (auto bytes = read_file(mapping.path, std::size_t{1} << 30)) {
                added.bytes = *std::move(bytes);
            }
            const auto header = elf::read_header(elf::source_of_bytes(as_bytes_view(added.bytes)));
            if (!header) return;
            added.segments = header->segments;
            file = files_.insert(files_.end(), std::move(added));
        }
        constexpr std::uint64_t page = 4096;
        const auto vaddr = elf::vaddr_of_offset(file->segments, mapping.offset, page);
        if (!vaddr) return;
        pieces.push_back({.start = mapping.start,
                          .end = mapping.end,
                          .module = static_cast<ModuleId>(file - files_.begin() + 1),
                          .bias = mapping.start - *vaddr});
    }

    Target& target_;
    std::vector<File> files_;
    std::vector<CodePiece> pieces_;
};

// The stacks as one copy, with only zeros between them.
class Copy {
public:
    StackCopy of(Target& target, const std::vector<StackRange>& stacks) {
        std::uint64_t start = stacks.front().start, end = stacks.front().end;
        for (const StackRange& stack : stacks) {
            start = std::min(start, stack.start);
            end = std::max(end, stack.end);
        }
        const std::uint64_t size = end - start;
        if (size > reserved) {
            std::fprintf(stderr, "the stacks are too far apart\n");
            std::exit(2);
        }
        if (size > (std::uint64_t{1} << 20)) ::madvise(area_, reserved, MADV_DONTNEED);
        for (const StackRange& stack : stacks)
            target.read(stack.start, std::span(area_ + (stack.start - start), stack.end - stack.start));
        return {.address = start, .bytes = Bytes(area_, size)};
    }

private:
    static constexpr std::uint64_t reserved = std::uint64_t{1} << 34;
    std::byte* area_ = static_cast<std::byte*>(
        ::mmap(nullptr, reserved, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
};

struct Totals {
    std::uint64_t steps = 0, right = 0, wrong = 0;
    std::uint64_t not_root = 0;     // right, but the walk did not report the root
    std::uint64_t no_table = 0;     // differs from a frame in code without a table
    std::uint64_t unsettled = 0;    // the stack is being changed by other means than calls and returns
    std::uint64_t in_handlers = 0;  // while a signal handler was running
    std::size_t deepest = 0;
    std::map<std::string, std::uint64_t> wrong_places, no_table_places;
};

class Comparison {
public:
    Comparison(Target& target, Modules& modules, std::vector<StackRange> checked)
        : target_(target), modules_(modules), unwinder_(modules, options()), checked_(std::move(checked)) {}

    void compare(const ShadowStack& shadow, const Registers& registers) {
        const bool was_unsettled = std::exchange(was_unsettled_, shadow.unsettled());
        std::vector<TrueFrame> truth = shadow.frames(registers);
        if (!checked_.empty() && !keep_checked(truth)) return;
        ++totals_.steps;
        if (was_unsettled) landed();
        const std::vector<StackRange> stacks = shadow.stacks(registers);
        const StackCopy copy = copy_.of(target_, stacks);
        if (shadow.unsettled() || (registers.arch() == Arch::x86_64 && is_rewritten(truth, copy))) {
            ++totals_.unsettled;
            return;
        }
        totals_.deepest = std::max(totals_.deepest, truth.size());
        totals_.in_handlers += stacks.size() > 1;
        const StopReason stop = unwinder_.walk(registers, copy, modules_, highest_max_depth, frames_);
        if (!checked_.empty() && frames_.size() > truth.size()) frames_.resize(truth.size());
        const std::size_t first = first_difference(truth);
        if (first == truth.size() && first == frames_.size()) {
            ++totals_.right;
            settled_suspects_ = suspects_.size();
            totals_.not_root += stop != StopReason::root;
            return;
        }
        const Frame& callee = frames_[first - 1];
        if (!unwinder_.facts(registers.arch(), callee.code_address(), modules_).known) {
            ++totals_.no_table;
            ++totals_.no_table_places[modules_.place(callee.pc)];
            return;
        }
        ++totals_.wrong;
        const std::string place = modules_.place(registers.pc());
        ++totals_.wrong_places[place];
        suspects_.push_back({.place = place, .text = text_of(place, truth, stop)});
    }

    // The differences, after the last step.
    void show() const {
        std::size_t shown = 0;
        for (const Suspect& suspect : suspects_)
            if (++shown <= most_shown) std::fputs(suspect.text.c_str(), stdout);
    }

    [[nodiscard]] const Totals& totals() const { return totals_; }
    [[nodiscard]] const Unwinder& unwinder() const { return unwinder_; }

private:
    static constexpr std::size_t most_shown = 20;
    struct Suspect {
        std::string place, text;
    };

    static UnwinderOptions options() {
        UnwinderOptions options;
        options.use_libunwind = false;
        return options;
    }

    // False if the innermost frame is not in the checked code.
    bool keep_checked(std::vector<TrueFrame>& truth) const {
        const auto elsewhere = std::ranges::find_if(truth, [&](const TrueFrame& frame) {
            const std::uint64_t address = CodeAddress{frame.pc, frame.return_address}.lookup();
            return std::ranges::none_of(
                checked_, [&](const StackRange& range) { return range.start <= address && address < range.end; });
        });
        if (elsewhere == truth.begin()) return false;
        if (elsewhere != truth.end()) truth.erase(elsewhere + 1, truth.end());
        return true;
    }

    // libgcc overwrites its own return address with the landing pad's address, some instructions before it jumps there.
    static bool is_rewritten(const std::vector<TrueFrame>& truth, const StackCopy& copy) {
        for (const TrueFrame& frame : truth) {
            std::uint64_t slot = 0;
            if (frame.return_address && read_at(copy.bytes, frame.sp - 8 - copy.address, slot) && slot != frame.pc)
                return true;
        }
        return false;
    }

    // Before an exception or longjmp lands, the stack changes piece by piece: libgcc stores the landing function's registers
    // where its own callers' are saved, and longjmp's table names the landing function as its caller. Differences since the
    // last right step were caused by this.
    void landed() {
        for (; suspects_.size() > settled_suspects_; suspects_.pop_back()) {
            --totals_.wrong;
            ++totals_.unsettled;
            const auto place = totals_.wrong_places.find(suspects_.back().place);
            if (--place->second == 0) totals_.wrong_places.erase(place);
        }
    }

    [[nodiscard]] std::size_t first_difference(const std::vector<TrueFrame>& truth) const {
        std::size_t at = 0;
        while (at < truth.size() && at < frames_.size() && frames_[at].pc == truth[at].pc &&
               frames_[at].sp == truth[at].sp && frames_[at].return_address == truth[at].return_address)
            ++at;
        return at;
    }

    std::string text_of(const std::string& where, const std::vector<TrueFrame>& truth, StopReason stop) {
        std::string text = "wrong at " + where + " (step " + std::to_string(totals_.steps) +
                           "), stopped: " + std::string(name_of(stop)) + "\n";
        for (std::size_t at = 0; at < std::max(truth.size(), frames_.size()); ++at) {
            const std::string mine = at < frames_.size() ? modules_.place(frames_[at].pc) : "-";
            const std::string real = at < truth.size() ? modules_.place(truth[at].pc) : "-";
            const std::uint64_t mine_sp = at < frames_.size() ? frames_[at].sp : 0;
            const std::uint64_t real_sp = at < truth.size() ? truth[at].sp : 0;
            char line[256];
            std::snprintf(line, sizeof line, "  %s %-34s sp %#-16llx true: %-34s sp %#llx\n",
                          mine == real && mine_sp == real_sp ? " " : "!", mine.c_str(),
                          static_cast<unsigned long long>(mine_sp), real.c_str(),
                          static_cast<unsigned long long>(real_sp));
            text += line;
        }
        return text;
    }

    Target& target_;
    Modules& modules_;
    Unwinder unwinder_;
    Copy copy_;
    std::vector<StackRange> checked_;
    std::vector<Frame> frames_;
    std::vector<Suspect> suspects_;     // every wrong step
    std::size_t settled_suspects_ = 0;  // of these, those before the last right one
    Totals totals_;
    bool was_unsettled_ = false;
};

int report(const Comparison& comparison) {
    comparison.show();
    const Totals& totals = comparison.totals();
    const auto number = [](std::uint64_t value) { return static_cast<unsigned long long>(value); };
    for (const auto& [place, count] : totals.wrong_places)
        std::printf("wrong %llu times at %s\n", number(count), place.c_str());
    for (const auto& [place, count] : totals.no_table_places)
        std::printf("no table, %llu times, at %s\n", number(count), place.c_str());
    const auto found = [&](FoundBy how) {
        return number(comparison.unwinder().counts().found[static_cast<std::size_t>(how)]);
    };
    std::printf(
        "steps %llu right %llu wrong %llu no_table %llu unsettled %llu not_root %llu in_handlers %llu deepest %zu\n",
        number(totals.steps), number(totals.right), number(totals.wrong), number(totals.no_table),
        number(totals.unsettled), number(totals.not_root), number(totals.in_handlers), totals.deepest);
    std::printf("found by rule %llu expression %llu signal %llu frame_pointer %llu link_register %llu\n",
                found(FoundBy::rule), found(FoundBy::expression), found(FoundBy::signal), found(FoundBy::frame_pointer),
                found(FoundBy::link_register));
    return totals.wrong != 0 ? 1 : 0;
}

int run(Target& target, Modules& modules, std::vector<StackRange> checked) {
    Comparison comparison(target, modules, std::move(checked));
    Registers registers = target.registers();
    ShadowStack shadow(registers);
    comparison.compare(shadow, registers);
    for (;;) {
        shadow.before(target, registers);
        const Event event = target.step();
        if (event == Event::ended) break;
        registers = target.registers();
        shadow.after(target, registers, event);
        comparison.compare(shadow, registers);
    }
    return report(comparison);
}

std::vector<StackRange> parse_ranges(const std::string& text) {
    std::vector<StackRange> ranges;
    for (const char* at = text.c_str(); *at != 0;) {
        char* end = nullptr;
        const std::uint64_t start = std::strtoull(at, &end, 16);
        if (*end != '-') break;
        ranges.push_back({.start = start, .end = std::strtoull(end + 1, &end, 16)});
        at = *end == ',' ? end + 1 : end;
    }
    return ranges;
}

}  // namespace

int main(int argc, char** argv) {
    const std::vector<std::string> arguments(argv + 1, argv + argc);
    if (arguments.size() >= 2 && arguments[0] == "ptrace") {
        const auto target = ptrace_target({arguments.begin() + 1, arguments.end()});
        Modules modules(*target);
        // Skip the dynamic linker's work before the program's entry.
        if (!target->run_to(modules.entry_of_program(arguments[1]))) return 2;
        return run(*target, modules, {});
    }
    if ((arguments.size() == 4 || arguments.size() == 5) && arguments[0] == "emulator") {
        const auto target =
            emulated_target(arguments[2] == "arm" ? Arch::arm : Arch::aarch64, arguments[1], arguments[3]);
        Modules modules(*target);
        return run(*target, modules, arguments.size() == 5 ? parse_ranges(arguments[4]) : std::vector<StackRange>());
    }
    std::fprintf(stderr, "usage: walk_steps ptrace PROGRAM; walk_steps emulator QEMU ARCH PROGRAM [RANGES]\n");
    return 2;
}
