// The tables that have a row for each stored row, each stack or each frame. They can be large, so nothing is computed
// before it is read.
#include <algorithm>

#include "profile/formats/json.h"
#include "profile/query/sample_cursor.h"
#include "views/sql/row_texts.h"
#include "views/sql/tables.h"

namespace flamewire::views::sql {
namespace {

using profile::StackFrame;
using profile::StackId;

struct SampleRow : profile::SampleRow {
    [[nodiscard]] std::int64_t id() const { return (std::int64_t{chunk} << 32) | index; }
};

// Narrows a filter to times that are in the range once `origin_ns` is subtracted.
void narrow(profile::RowFilter& filter, const Range& range, std::int64_t origin_ns) {
    constexpr auto lowest = std::numeric_limits<std::int64_t>::min(), latest = std::numeric_limits<std::int64_t>::max();
    const auto moved = [&](std::int64_t at) {
        std::int64_t sum = 0;
        return __builtin_add_overflow(at, origin_ns, &sum) ? (at < 0 ? lowest : latest) : sum;
    };
    const std::int64_t low = moved(range.low), high = range.high == latest ? latest : moved(range.high);
    if (low > 0) filter.start_ns = std::max(filter.start_ns, static_cast<std::uint64_t>(low));
    if (high != latest) filter.end_ns = std::min(filter.end_ns, high < 0 ? 0 : static_cast<std::uint64_t>(high) + 1);
}

// By thread id; empty if there is no condition on threads.
std::vector<std::uint8_t> wanted_threads(const profile::Store& store, const Scan& scan) {
    const auto id = scan.number("thread_id"), pid = scan.number("pid"), tid = scan.number("tid");
    std::vector<std::uint8_t> wanted;
    if (!id && !pid && !tid) return wanted;
    const auto threads = store.threads();
    for (std::size_t at = 0; at < threads.size(); ++at)
        wanted.push_back((!id || static_cast<std::int64_t>(at) == *id) && (!pid || threads[at].pid == *pid) &&
                         (!tid || threads[at].tid == *tid));
    return wanted;
}

profile::RowFilter filter_of(const Context& context, const Scan& scan) {
    profile::RowFilter filter;
    const auto start_ns = static_cast<std::int64_t>(context.profile().start_ns);
    narrow(filter, scan.range("time_ns"), 0);
    narrow(filter, scan.range("elapsed_ns"), start_ns);
    if (context.profile().started_ns != 0)
        narrow(filter, scan.range("wall_ns"), start_ns - context.profile().started_ns);
    filter.threads = wanted_threads(context.store(), scan);
    if (const auto name = scan.text("event")) {
        const auto events = context.store().events();
        const auto named = [&](const profile::Event& event) { return event.name == *name; };
        if (std::ranges::count_if(events, named) == 0)
            filter.end_ns = 0;
        else if (std::ranges::count_if(events, named) == 1)
            filter.event = static_cast<profile::EventId>(std::ranges::find_if(events, named) - events.begin());
    }
    return filter;
}

const profile::Thread& thread_of(const Context& context, const SampleRow& row) {
    return context.store().threads()[row.lane.thread];
}
StackFrame innermost(const Context& context, const SampleRow& row) {
    return profile::innermost_frame(context.store(), row.stack);
}

using SampleColumns = std::vector<ColumnOf<SampleRow>>;

// Where and when the samples were taken.
SampleColumns sample_keys() {
    return {
        {{"time_ns", "INTEGER", "ns", "start of the row's time, CLOCK_MONOTONIC of the target", Key::range},
         [](const Context&, const SampleRow& row) { return integer(row.time_ns); }},
        {{"bucket_ns", "INTEGER", "ns", "length of the row's time"},
         [](const Context&, const SampleRow& row) { return integer(row.bucket_ns); }},
        {{"elapsed_ns", "INTEGER", "ns", "start of the row's time since the start of the session", Key::range},
         [](const Context& context, const SampleRow& row) { return elapsed(context, row.time_ns); }},
        {{"wall_ns", "INTEGER", "ns since 1970", "start of the row's time by the clock; NULL: unknown", Key::range},
         [](const Context& context, const SampleRow& row) { return wall(context, row.time_ns); }},
        {{"event", "TEXT", "", "name of the event", Key::many},
         [](const Context& context, const SampleRow& row) { return event_name(context, row.lane.event); }},
        {{"unit", "TEXT", "", "unit of weight"},
         [](const Context& context, const SampleRow& row) { return event_unit(context, row.lane.event); }},
        {{"pid", "INTEGER", "", "process", Key::many},
         [](const Context& context, const SampleRow& row) { return integer(thread_of(context, row).pid); }},
        {{"process", "TEXT", "", "name of the process"},
         [](const Context& context, const SampleRow& row) { return process_name(context, row.lane.thread); }},
        {{"tid", "INTEGER", "", "thread", Key::many},
         [](const Context& context, const SampleRow& row) { return integer(thread_of(context, row).tid); }},
        {{"thread", "TEXT", "", "latest name of the thread"},
         [](const Context& context, const SampleRow& row) { return null_if_empty(thread_of(context, row).comm); }},
        {{"thread_id", "INTEGER", "", "row of the table threads", Key::many},
         [](const Context&, const SampleRow& row) { return integer(row.lane.thread); }},
        {{"cpu", "INTEGER", "", "CPU; NULL: of several CPUs"},
         [](const Context&, const SampleRow& row) {
             return row.lane.cpu == profile::folded_cpu ? Value() : integer(row.lane.cpu);
         }},
    };
}

// What was counted, and the innermost frame.
SampleColumns sample_values() {
    return {
        {{"samples", "INTEGER", "", "number of samples"},
         [](const Context&, const SampleRow& row) { return integer(row.weight.samples); }},
        {{"weight", "INTEGER", "unit", "sum of their weights"},
         [](const Context&, const SampleRow& row) { return integer(row.weight.weight); }},
        {{"stack_id", "INTEGER", "", "row of the tables stacks and frames; 0: no stack"},
         [](const Context&, const SampleRow& row) { return integer(row.stack); }},
        {{"function", "TEXT", "", "innermost function"},
         [](const Context& context, const SampleRow& row) {
             return context.text(innermost(context, row).function.name);
         }},
        {{"module", "TEXT", "", "its program or library, without directories"},
         [](const Context& context, const SampleRow& row) {
             return context.text(innermost(context, row).function.module);
         }},
        {{"file", "TEXT", "", "source file of the sampled instruction"},
         [](const Context& context, const SampleRow& row) { return context.text(innermost(context, row).file); }},
        {{"line", "INTEGER", "", "line of the sampled instruction"},
         [](const Context& context, const SampleRow& row) { return null_if_0(innermost(context, row).line); }},
    };
}

Table samples() {
    SampleColumns columns = sample_keys();
    for (const auto& column : sample_values()) columns.push_back(column);
    const auto start = [](const Context& context, const Scan& scan) {
        return [cursor = profile::SampleCursor(context.store(), filter_of(context, scan))](SampleRow& row) mutable {
            return cursor.next(row);
        };
    };
    return table<SampleRow>(
        "samples", "rows: samples of one time, event, thread, CPU and stack together",
        [](const Context& context) { return context.store().row_count(); }, start, columns);
}

// The ids of sampled stacks, or the one that the scan wants.
class StackIds {
public:
    StackIds(Context& context, const Scan& scan) {
        const auto count = profile::stack_count(context.store());
        if (const auto only = scan.number("stack_id")) {
            if (*only > 0 && static_cast<std::uint64_t>(*only) < count) {
                next_ = static_cast<std::size_t>(*only);
                end_ = next_ + 1;
            }
            return;
        }
        sampled_ = &context.sampled_stacks();
        next_ = 1;
        end_ = count;
    }
    // False at the end.
    bool next(StackId& stack) {
        while (next_ < end_ && sampled_ != nullptr && !(*sampled_)[next_]) ++next_;
        if (next_ >= end_) return false;
        stack = static_cast<StackId>(next_++);
        return true;
    }

private:
    const std::vector<bool>* sampled_ = nullptr;
    std::size_t next_ = 0, end_ = 0;
};

std::size_t estimated_stacks(const Context& context) {
    return std::min(profile::stack_count(context.store()), context.store().row_count() + 1);
}

std::vector<StackFrame> frames_of(const Context& context, StackId stack) {
    std::vector<StackFrame> frames;
    profile::frames_of_stack(context.store(), stack, frames);
    return frames;
}

Value folded(const Context& context, const StackId& stack) {
    const std::vector<StackFrame> frames = frames_of(context, stack);
    std::string text;
    for (std::size_t i = frames.size(); i-- > 0;) {
        text += context.string(frames[i].function.name);
        if (i != 0) text += ';';
    }
    return text;
}

Table stacks() {
    const auto start = [](Context& context, const Scan& scan) {
        return [stacks = StackIds(context, scan)](StackId& stack) mutable { return stacks.next(stack); };
    };
    return table<StackId>(
        "stacks", "stacks of the samples", estimated_stacks, start,
        {
            {{"stack_id", "INTEGER", "", "number of the stack", Key::one},
             [](const Context&, const StackId& stack) { return integer(stack); }},
            {{"frames", "INTEGER", "", "number of frames, inlined functions included"},
             [](const Context& context, const StackId& stack) { return integer(frames_of(context, stack).size()); }},
            {{"function", "TEXT", "", "innermost function"},
             [](const Context& context, const StackId& stack) {
                 return context.text(profile::innermost_frame(context.store(), stack).function.name);
             }},
            {{"module", "TEXT", "", "its program or library, without directories"},
             [](const Context& context, const StackId& stack) {
                 return context.text(profile::innermost_frame(context.store(), stack).function.module);
             }},
            {{"folded", "TEXT", "", "all functions, outermost first, separated by semicolons"}, folded},
        });
}

struct FrameRow {
    StackId stack = 0;
    std::size_t depth = 0;
    std::vector<StackFrame> frames;  // of the stack
    [[nodiscard]] const StackFrame& frame() const { return frames[depth]; }
    [[nodiscard]] std::int64_t id() const { return (std::int64_t{stack} << 32) | static_cast<std::int64_t>(depth); }
};

Table frames() {
    const auto start = [](Context& context, const Scan& scan) {
        return [&context, stacks = StackIds(context, scan)](FrameRow& row) mutable {
            if (++row.depth < row.frames.size()) return true;
            row.depth = 0;
            do {
                if (!stacks.next(row.stack)) return false;
                profile::frames_of_stack(context.store(), row.stack, row.frames);
            } while (row.frames.empty());
            return true;
        };
    };
    return table<FrameRow>(
        "frames", "frames of the stacks",
        [](const Context& context) {
            constexpr std::size_t frames_of_a_stack = 30;
            return estimated_stacks(context) * frames_of_a_stack;
        },
        start,
        {
            {{"stack_id", "INTEGER", "", "row of the table stacks", Key::few},
             [](const Context&, const FrameRow& row) { return integer(row.stack); }},
            {{"depth", "INTEGER", "", "0: innermost"},
             [](const Context&, const FrameRow& row) { return integer(row.depth); }},
            {{"function", "TEXT", "", "function"},
             [](const Context& context, const FrameRow& row) { return context.text(row.frame().function.name); }},
            {{"module", "TEXT", "", "program or library, without directories"},
             [](const Context& context, const FrameRow& row) { return context.text(row.frame().function.module); }},
            {{"kind", "TEXT", "", "user, kernel, jit, inlined or unknown"},
             [](const Context&, const FrameRow& row) { return Value(profile::kind_name(row.frame().function.kind)); }},
            {{"file", "TEXT", "", "source file of the instruction or call"},
             [](const Context& context, const FrameRow& row) { return context.text(row.frame().file); }},
            {{"line", "INTEGER", "", "line of the instruction or call"},
             [](const Context&, const FrameRow& row) { return null_if_0(row.frame().line); }},
            {{"module_id", "INTEGER", "", "row of the table modules"},
             [](const Context&, const FrameRow& row) { return null_if_0(row.frame().module); }},
            {{"address", "INTEGER", "", "address in the module's ELF file, or of the kernel"},
             [](const Context&, const FrameRow& row) {
                 return row.frame().address == 0 ? Value() : address(row.frame().address);
             }},
            {{"inlined", "INTEGER", "", "1: inlined into the next frame, which has the same address"},
             [](const Context&, const FrameRow& row) { return integer(row.frame().inlined ? 1 : 0); }},
        });
}

}  // namespace

std::vector<Table> sample_tables() { return {samples(), stacks(), frames()}; }

}  // namespace flamewire::views::sql
