// The tables of everything except samples and what they refer to.
#include "views/counters.h"
#include "views/sql/row_texts.h"
#include "views/sql/tables.h"
#include "views/timeline.h"

namespace flamewire::views::sql {
namespace {

// A function that returns pointers to the elements of a list, one after the other.
template <class Element>
auto each(std::span<const Element> list) {
    return [list, at = std::size_t{0}](const Element*& element) mutable {
        if (at >= list.size()) return false;
        element = &list[at++];
        return true;
    };
}

struct Reading {
    const profile::CounterSeries* series = nullptr;
    const profile::CounterPoint* point = nullptr;
    [[nodiscard]] bool counted() const { return point->status == wire::CounterStatus::counted; }
};

Value tid_of(const Context& context, profile::ThreadId thread) {
    return thread == 0 ? Value() : integer(context.store().threads()[thread].tid);
}
Value thread_name(const Context& context, profile::ThreadId thread) {
    return thread == 0 ? Value() : null_if_empty(context.store().threads()[thread].comm);
}

Table counters() {
    const auto start = [](const Context& context, const Scan&) {
        return [all = context.store().counters().series(), series = std::size_t{0},
                point = std::size_t{0}](Reading& row) mutable {
            while (series < all.size() && point >= all[series].points.size()) {
                ++series;
                point = 0;
            }
            if (series >= all.size()) return false;
            row = {&all[series], &all[series].points[point++]};
            return true;
        };
    };
    return table<Reading>(
        "counters", "readings of counters: the whole target's, and those of threads and CPUs",
        [](const Context& context) {
            std::size_t points = 0;
            for (const profile::CounterSeries& series : context.store().counters().series())
                points += series.points.size();
            return points;
        },
        start,
        {
            {{"start_ns", "INTEGER", "ns", "start of the interval, CLOCK_MONOTONIC of the target"},
             [](const Context&, const Reading& row) { return integer(row.point->start_ns); }},
            {{"end_ns", "INTEGER", "ns", "end of the interval"},
             [](const Context&, const Reading& row) { return integer(row.point->end_ns); }},
            {{"elapsed_ns", "INTEGER", "ns", "its start since the start of the session"},
             [](const Context& context, const Reading& row) { return elapsed(context, row.point->start_ns); }},
            {{"counter", "TEXT", "", "name of the counter"},
             [](const Context& context, const Reading& row) { return context.text(row.series->key.name); }},
            {{"unit", "TEXT", "", "unit of value"},
             [](const Context& context, const Reading& row) { return context.text(row.series->key.unit); }},
            {{"part", "TEXT", "", "PMU of a hybrid CPU that counted it"},
             [](const Context& context, const Reading& row) { return context.text(row.series->key.part); }},
            {{"tid", "INTEGER", "", "thread; NULL: the whole target, or a CPU"},
             [](const Context& context, const Reading& row) { return tid_of(context, row.series->key.thread); }},
            {{"thread", "TEXT", "", "its name"},
             [](const Context& context, const Reading& row) { return thread_name(context, row.series->key.thread); }},
            {{"cpu", "INTEGER", "", "CPU; NULL: the whole target, or a thread"},
             [](const Context&, const Reading& row) {
                 const std::uint32_t plus_1 = row.series->key.cpu_plus_1;
                 return plus_1 == 0 ? Value() : integer(plus_1 - 1);
             }},
            {{"value", "INTEGER", "unit", "as counted, not scaled; NULL: unknown"},
             [](const Context&, const Reading& row) { return row.counted() ? integer(row.point->value) : Value(); }},
            {{"enabled_ns", "INTEGER", "ns", "CPU time in which it should have counted"},
             [](const Context&, const Reading& row) {
                 return row.counted() ? integer(row.point->enabled_ns) : Value();
             }},
            {{"running_ns", "INTEGER", "ns", "CPU time in which it counted"},
             [](const Context&, const Reading& row) {
                 return row.counted() ? integer(row.point->running_ns) : Value();
             }},
            {{"status", "TEXT", "", "counted, not_counted, unsupported, never_counts or forbidden"},
             [](const Context&, const Reading& row) { return Value(name_of(row.point->status)); }},
        });
}

Table coverage() {
    using Row = profile::Coverage;
    const auto start = [](const Context& context, const Scan&) {
        return [all = context.store().coverage(), at = std::size_t{0}](Row& row) mutable {
            if (at >= all.size()) return false;
            row = all[at++];
            return true;
        };
    };
    return table<Row>(
        "coverage", "stretches of time with equal detail; a limit on rows in memory reduces it",
        [](const Context&) { return std::size_t{1}; }, start,
        {
            {{"start_ns", "INTEGER", "ns", "start, CLOCK_MONOTONIC of the target"},
             [](const Context&, const Row& row) { return integer(row.start_ns); }},
            {{"end_ns", "INTEGER", "ns", "end"}, [](const Context&, const Row& row) { return integer(row.end_ns); }},
            {{"bucket_ns", "INTEGER", "ns", "length of the longest row"},
             [](const Context&, const Row& row) { return integer(row.bucket_ns); }},
            {{"whole", "INTEGER", "", "1: in the detail in which it arrived"},
             [](const Context&, const Row& row) { return integer(row.whole ? 1 : 0); }},
            {{"dropped", "INTEGER", "", "1: no rows are left"},
             [](const Context&, const Row& row) { return integer(row.dropped ? 1 : 0); }},
        });
}

Table info() {
    using Row = const std::pair<std::string, Value>*;
    return table<Row>(
        "info", "facts about the session and its recording",
        [](const Context& context) { return context.profile().info.size(); },
        [](const Context& context, const Scan&) { return each(std::span(context.profile().info)); },
        {
            {{"name", "TEXT", "", "name of the fact"},
             [](const Context&, const Row& row) { return Value(std::string_view(row->first)); }},
            {{"value", "", "", "text or number"}, [](const Context&, const Row& row) { return row->second; }},
        });
}

Table losses() {
    using Row = const profile::LossTotal*;
    return table<Row>(
        "losses", "what was lost or reduced, and why",
        [](const Context& context) { return context.store().losses().size(); },
        [](const Context& context, const Scan&) { return each(context.store().losses()); },
        {
            {{"reason", "TEXT", "", "reason, as in the JSON of the server"},
             [](const Context& context, const Row& row) { return Value(context.profile().loss_reason(row->reason)); }},
            {{"event", "TEXT", "", "event; NULL: unknown, or all"},
             [](const Context& context, const Row& row) { return event_name(context, row->event); }},
            {{"count", "INTEGER", "", "samples, or the reason's own unit"},
             [](const Context&, const Row& row) { return integer(row->count); }},
            {{"first_ns", "INTEGER", "ns", "first one, CLOCK_MONOTONIC of the target"},
             [](const Context&, const Row& row) { return integer(row->first_ns); }},
            {{"last_ns", "INTEGER", "ns", "last one"},
             [](const Context&, const Row& row) { return integer(row->last_ns); }},
            {{"by_store", "INTEGER", "", "1: in the file, but not in these tables"},
             [](const Context&, const Row& row) { return integer(row->by_store ? 1 : 0); }},
        });
}

Table marks() {
    using Row = const profile::Mark*;
    return table<Row>(
        "marks", "events on the time axis: processes, losses, lost connections, changes of the recording",
        [](const Context&) { return std::size_t{1000}; },
        [](Context& context, const Scan&) { return each(std::span(context.marks())); },
        {
            {{"kind", "TEXT", "", "begin, exec, exit, loss, reconnect or change"},
             [](const Context&, const Row& row) { return Value(name_of(row->kind)); }},
            {{"start_ns", "INTEGER", "ns", "start, CLOCK_MONOTONIC of the target"},
             [](const Context&, const Row& row) { return integer(row->start_ns); }},
            {{"end_ns", "INTEGER", "ns", "end; equal to the start for a moment"},
             [](const Context&, const Row& row) { return integer(row->end_ns); }},
            {{"elapsed_ns", "INTEGER", "ns", "its start since the start of the session"},
             [](const Context& context, const Row& row) { return elapsed(context, row->start_ns); }},
            {{"count", "INTEGER", "", "number of events; of a loss: as in losses"},
             [](const Context&, const Row& row) { return integer(row->count); }},
            {{"tid", "INTEGER", "", "main thread of the process"},
             [](const Context& context, const Row& row) { return tid_of(context, row->thread); }},
            {{"name", "TEXT", "", "name of the process, or what changed"},
             [](const Context& context, const Row& row) { return context.text(row->name); }},
            {{"reason", "TEXT", "", "reason of a loss"},
             [](const Context& context, const Row& row) {
                 return row->kind == profile::MarkKind::loss ? Value(context.profile().loss_reason(row->reason))
                                                             : Value();
             }},
        });
}

Table notices() {
    using Row = const wire::Notice*;
    return table<Row>(
        "notices", "what the agent and the server reported about the recording",
        [](const Context& context) { return context.profile().notices.size(); },
        [](const Context& context, const Scan&) { return each(std::span(context.profile().notices)); },
        {
            {{"code", "TEXT", "", "kind of notice"},
             [](const Context&, const Row& row) { return Value(std::string_view(row->code)); }},
            {{"text", "TEXT", "", "what happened"},
             [](const Context&, const Row& row) { return Value(std::string_view(row->text)); }},
            {{"remedy", "TEXT", "", "what helps"},
             [](const Context&, const Row& row) { return null_if_empty(row->remedy); }},
        });
}

struct ThreadTime {
    profile::ThreadId thread = 0;
    const profile::ThreadStretch* stretch = nullptr;
};

template <std::size_t state>
Value state_time(const Context&, const ThreadTime& row) {
    return integer(row.stretch->times.state_ns[state]);
}

Table thread_states() {
    const auto start = [](const Context& context, const Scan&) {
        return [all = context.store().thread_times().lives(), life = std::size_t{0},
                at = std::size_t{0}](ThreadTime& row) mutable {
            while (life < all.size() && at >= all[life].stretches.size()) {
                ++life;
                at = 0;
            }
            if (life >= all.size()) return false;
            row = {all[life].thread, &all[life].stretches[at++]};
            return true;
        };
    };
    return table<ThreadTime>(
        "thread_states", "what threads did with their time, with the event off-cpu",
        [](const Context& context) { return context.store().thread_times().lives().size() * 10; }, start,
        {
            {{"tid", "INTEGER", "", "thread"},
             [](const Context& context, const ThreadTime& row) { return tid_of(context, row.thread); }},
            {{"thread", "TEXT", "", "its name"},
             [](const Context& context, const ThreadTime& row) { return thread_name(context, row.thread); }},
            {{"thread_id", "INTEGER", "", "row of the table threads"},
             [](const Context&, const ThreadTime& row) { return integer(row.thread); }},
            {{"start_ns", "INTEGER", "ns", "start, CLOCK_MONOTONIC of the target"},
             [](const Context&, const ThreadTime& row) { return integer(row.stretch->start_ns); }},
            {{"end_ns", "INTEGER", "ns", "end"},
             [](const Context&, const ThreadTime& row) { return integer(row.stretch->times.end_ns); }},
            {{"run_ns", "INTEGER", "ns", "time on a CPU"}, state_time<0>},
            {{"runnable_ns", "INTEGER", "ns", "time waiting for a CPU"}, state_time<1>},
            {{"blocked_ns", "INTEGER", "ns", "time blocked"}, state_time<2>},
            {{"io_wait_ns", "INTEGER", "ns", "time waiting for I/O"}, state_time<3>},
            {{"preempted", "INTEGER", "", "how often it left a CPU while runnable"},
             [](const Context&, const ThreadTime& row) { return integer(row.stretch->times.preempted); }},
            {{"slept", "INTEGER", "", "how often it left a CPU to sleep"},
             [](const Context&, const ThreadTime& row) { return integer(row.stretch->times.slept); }},
            {{"io_waits", "INTEGER", "", "how often it left a CPU to wait for I/O"},
             [](const Context&, const ThreadTime& row) { return integer(row.stretch->times.io_waits); }},
        });
}

Table warnings() {
    using Row = const Warning*;
    return table<Row>(
        "warnings", "problems that affect more than 5 % of an event", [](const Context&) { return std::size_t{1}; },
        [](Context& context, const Scan&) { return each(std::span(context.warnings())); },
        {
            {{"event", "TEXT", "", "name of the event"},
             [](const Context& context, const Row& row) { return event_name(context, row->event); }},
            {{"code", "TEXT", "", "kind of problem"},
             [](const Context&, const Row& row) { return Value(std::string_view(row->notice.code)); }},
            {{"text", "TEXT", "", "share and cause"},
             [](const Context&, const Row& row) { return Value(std::string_view(row->notice.text)); }},
            {{"remedy", "TEXT", "", "what helps"},
             [](const Context&, const Row& row) { return null_if_empty(row->notice.remedy); }},
        });
}

}  // namespace

std::vector<Table> recording_tables() {
    return {counters(), coverage(), info(), losses(), marks(), notices(), thread_states(), warnings()};
}

}  // namespace flamewire::views::sql
