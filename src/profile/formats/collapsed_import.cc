#include "profile/formats/collapsed_import.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>

namespace flamewire::profile {
namespace {

struct Folded {
    std::string_view stack;
    std::uint64_t count = 0;
};

// Counts may be decimals (some scripts scale); they are rounded.
std::optional<std::uint64_t> count_of(std::string_view text) {
    std::uint64_t whole = 0;
    const char* const begin = text.data();
    const char* const end = begin + text.size();
    const auto [stop, error] = std::from_chars(begin, end, whole);
    if (error == std::errc() && stop == end) return whole;
    double number = 0;
    const auto [stop_too, error_too] = std::from_chars(begin, end, number);
    constexpr double most = 9e18;
    if (error_too != std::errc() || stop_too != end || !(number >= 0) || number > most) return {};
    return static_cast<std::uint64_t>(std::llround(number));
}

std::optional<Folded> parse(std::string_view line) {
    while (!line.empty() && (line.back() == '\r' || line.back() == ' ' || line.back() == '\t')) line.remove_suffix(1);
    const std::size_t space = line.find_last_of(" \t");
    if (space == std::string_view::npos || space == 0) return {};
    const auto count = count_of(line.substr(space + 1));
    if (!count) return {};
    std::string_view stack = line.substr(0, space);
    while (!stack.empty() && (stack.back() == ' ' || stack.back() == '\t')) stack.remove_suffix(1);
    if (stack.empty()) return {};
    return Folded{stack, *count};
}

bool is_blank(std::string_view line) { return line.find_first_not_of(" \t\r") == std::string_view::npos; }

}  // namespace

CollapsedImport::CollapsedImport(RecordingBuilder& builder, std::uint64_t bucket) : builder_(builder) {
    row_.bucket = bucket;
    row_.event = builder.event("samples", "samples");
    row_.thread = builder.thread(0, 0, "");
}

wire::Id CollapsedImport::location_of(std::string_view frame) {
    RecordingBuilder::Name name{.function = frame};
    if (frame.size() > 4 && frame.ends_with(']') && frame.substr(frame.size() - 4, 2) == "_[") {
        const char mark = frame[frame.size() - 2];
        if (mark == 'k') name.flags = wire::location_flag::kernel_mode;
        if (mark == 'i') name.flags = wire::location_flag::inlined;
        if (mark == 'j') name.module = jit_ != 0 ? jit_ : jit_ = builder_.module(wire::ModuleKind::jit, "[jit]");
        if (mark == 'k' || mark == 'j' || mark == 'i') name.function.remove_suffix(4);
    }
    return builder_.location(name);
}

Result<bool> CollapsedImport::line(std::string_view text) {
    ++line_number_;
    if (is_blank(text)) return true;
    ++lines_;
    const auto folded = parse(text);
    if (!folded) {
        if (bad_lines_++ == 0) first_bad_ = line_number_;
        return true;
    }
    // Frames that end at the same place of the same text have the same stack.
    const std::string_view stack = folded->stack;
    const auto same = static_cast<std::size_t>(
        std::mismatch(stack.begin(), stack.end(), last_.begin(), last_.end()).first - stack.begin());
    const auto ends_here = [&](const Step& step) {
        return step.end <= same && (step.end == stack.size() || stack[step.end] == ';');
    };
    while (!steps_.empty() && !ends_here(steps_.back())) steps_.pop_back();
    last_.assign(stack);
    std::size_t start = steps_.empty() ? 0 : steps_.back().end + 1;
    while (start <= stack.size()) {
        const std::size_t end = std::min(stack.find(';', start), stack.size());
        const wire::Id parent = steps_.empty() ? 0 : steps_.back().stack;
        // Nothing between two separators is no frame.
        const wire::Id id =
            end == start ? parent : builder_.stack(parent, location_of(stack.substr(start, end - start)));
        steps_.push_back({end, id});
        start = end + 1;
    }
    row_.stack = steps_.back().stack;
    if (row_.stack == 0 || folded->count == 0) return true;
    row_.weight = folded->count;
    row_.count =
        static_cast<std::uint32_t>(std::min<std::uint64_t>(folded->count, std::numeric_limits<std::uint32_t>::max()));
    return builder_.add(row_);
}

Result<bool> CollapsedImport::feed(std::string_view text) {
    return lines_in_.feed(text, [&](std::string_view one) { return line(one); });
}

Result<bool> CollapsedImport::finish() {
    TRY(lines_in_.finish([&](std::string_view one) { return line(one); }));
    if (bad_lines_ == lines_)
        return fail(ErrorCode::invalid, "no line of the file is a folded stack (\"outer;inner count\")");
    if (bad_lines_ != 0)
        builder_.note("import-lines",
                      fmt::format("{} of {} lines are no folded stack and were left out, the first is line {}.",
                                  bad_lines_, lines_, first_bad_));
    builder_.note("import-no-times",
                  "Folded stacks have no times, threads or addresses: the file is one moment of one thread.");
    return true;
}

bool CollapsedImport::recognises(std::string_view beginning) {
    unsigned good = 0, bad = 0;
    constexpr unsigned enough = 20;
    while (good + bad < enough) {
        const std::size_t end = beginning.find('\n');
        const std::string_view text = beginning.substr(0, end);
        if (text.find('\0') != std::string_view::npos) return false;
        // A last line may be cut where the beginning ends.
        if (end == std::string_view::npos && good + bad != 0) break;
        if (!is_blank(text)) ++(parse(text) ? good : bad);
        if (end == std::string_view::npos) break;
        beginning.remove_prefix(end + 1);
    }
    return good > 4 * bad;
}

Result<bool> import_collapsed(ImportJob& job) {
    wire::Recording about;
    about.start_ns = import_moment_ns;
    CollapsedImport import(job.begin(std::move(about), 0), import_moment_ns / wire::default_bucket_ns);
    TRY(read_through(job, [&](std::string_view piece) { return import.feed(piece); }));
    return import.finish();
}

}  // namespace flamewire::profile
