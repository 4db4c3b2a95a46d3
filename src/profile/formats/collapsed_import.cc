#include "profile/formats/collapsed_import.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

#include "profile/formats/line_words.h"

namespace flamewire::profile {
namespace {

// Indexed by the number of places / 3.
constexpr std::array units{"samples", "thousandths", "millionths", "billionths", "10^-12", "10^-15", "10^-18"};

}  // namespace

CollapsedImport::CollapsedImport(RecordingBuilder& builder, std::uint64_t bucket, const FoldedShape& shape)
    : builder_(builder), shape_(shape) {
    row_.bucket = bucket;
    begin_tables();
}

void CollapsedImport::begin_tables() {
    row_.event = builder_.event("samples", units[static_cast<std::size_t>(shape_.places) / 3]);
    if (shape_.two_columns) {
        before_ = builder_.thread(0, two_sides_before, "before");
        row_.thread = builder_.thread(0, two_sides_after, "after");
    } else {
        row_.thread = builder_.thread(0, 0, "");
    }
    jit_ = 0;
    last_.clear();
    steps_.clear();
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
    const auto folded = parse_folded(text);
    if (!folded && text.starts_with('#')) return true;
    ++lines_;
    if (!folded || (shape_.two_columns && !folded->pair)) {
        if (bad_lines_++ == 0) first_bad_ = line_number_;
        return true;
    }
    // Frames that end at the same position of the same text have the same stack.
    const std::string_view stack = shape_.two_columns ? folded->pair->stack : folded->stack;
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
        // Skip empty text between two separators.
        const wire::Id id =
            end == start ? parent : builder_.stack(parent, location_of(stack.substr(start, end - start)));
        steps_.push_back({end, id});
        start = end + 1;
    }
    row_.stack = steps_.back().stack;
    if (row_.stack == 0) return true;
    if (shape_.two_columns) {
        wire::Row before = row_;
        before.thread = before_;
        TRY(add(before, folded->pair->before));
    }
    TRY(add(row_, folded->number));
    if (builder_.entries() < max_entries) return true;
    // The session has the tables now, so a second copy of all names and stacks is not needed.
    TRY(builder_.give());
    builder_.begin_epoch();
    begin_tables();
    return true;
}

Result<bool> CollapsedImport::add(wire::Row row, const FoldedNumber& number) {
    if (number.digits == 0) return true;
    row.weight = number.scaled(shape_.places);
    // The number of samples is unknown for weights with decimals.
    row.count = shape_.decimals ? 1
                                : static_cast<std::uint32_t>(
                                      std::min<std::uint64_t>(row.weight, std::numeric_limits<std::uint32_t>::max()));
    return builder_.add(row);
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
                      fmt::format("{} of {} lines are not folded stacks and were skipped. The first is line {}.",
                                  bad_lines_, lines_, first_bad_));
    if (shape_.decimals)
        builder_.note(
            "import-decimals",
            fmt::format("The counts have decimals. Each line counts as one sample; weights are in {}.",
                        shape_.places == 0 ? "whole numbers" : units[static_cast<std::size_t>(shape_.places) / 3]));
    if (shape_.two_columns)
        builder_.note(
            std::string(two_sides_note),
            "The file has two columns (difffolded.pl): thread \"before\" is the first, thread \"after\" the second.",
            "compare the two threads, or run: flamewire diff FILE");
    builder_.note("import-no-times",
                  "Folded stacks have no times, threads or addresses: the file is one moment of one thread.");
    return true;
}

bool CollapsedImport::recognises(std::string_view beginning) {
    unsigned good = 0, stacks = 0, bad = 0;
    constexpr unsigned enough = 200;
    while (good + bad < enough) {
        const std::size_t end = beginning.find('\n');
        const std::string_view text = beginning.substr(0, end);
        if (text.find('\0') != std::string_view::npos) return false;
        // The last line can be cut at the end of `beginning`.
        if (end == std::string_view::npos && good + bad != 0) break;
        if (const auto folded = parse_folded(text)) {
            ++good;
            stacks += folded->stack.find(';') != std::string_view::npos ? 1U : 0U;
        } else if (!is_blank(text) && !text.starts_with('#')) {
            ++bad;
        }
        if (end == std::string_view::npos) break;
        beginning.remove_prefix(end + 1);
    }
    // A frame separator makes a folded stack likely.
    return good > 4 * bad || stacks > bad;
}

Result<bool> import_collapsed(ImportJob& job) {
    FoldedScan scan;
    LineFeed lines;
    const auto inspect = [&](std::string_view line) -> Result<bool> {
        scan.line(line);
        return true;
    };
    TRY(read_through(job, [&](std::string_view piece) { return lines.feed(piece, inspect); }));
    TRY(lines.finish(inspect));
    wire::Recording about;
    about.start_ns = import_moment_ns;
    CollapsedImport import(job.begin(std::move(about), 0), import_moment_ns / wire::default_bucket_ns, scan.shape());
    TRY(read_through(job, [&](std::string_view piece) { return import.feed(piece); }));
    return import.finish();
}

}  // namespace flamewire::profile
