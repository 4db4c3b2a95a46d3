// The tables of single samples of traced events.
#include "views/sql/row_texts.h"
#include "views/sql/tables.h"

namespace flamewire::views::sql {
namespace {

struct Hit {
    HitRef ref;
    [[nodiscard]] const profile::Hit& hit() const { return ref.hit(); }
};

// One value of a hit.
struct HitValue {
    HitRef ref;
    std::size_t field = 0;
    const HitValues* values = nullptr;
};

// Moves to the next hit; false: there is none.
class Walk {
public:
    explicit Walk(const profile::Store& store) : chunks_(&store.hits().chunks()) {}
    bool next(HitRef& ref) {
        while (chunk_ < chunks_->size() && index_ >= (*chunks_)[chunk_].hits.size()) {
            ++chunk_;
            index_ = 0;
        }
        if (chunk_ >= chunks_->size()) return false;
        ref = {&(*chunks_)[chunk_], index_++};
        return true;
    }

private:
    const std::deque<profile::HitChunk>* chunks_;
    std::size_t chunk_ = 0, index_ = 0;
};

Table hits() {
    return table<Hit>(
        "hits", "single samples of traced events, the newest that fit in memory; hit_values has their values",
        [](const Context& context) { return context.store().hits().size(); },
        [](const Context& context, const Scan&) {
            return [walk = Walk(context.store())](Hit& row) mutable { return walk.next(row.ref); };
        },
        {
            {{"number", "INTEGER", "", "counts from 0 in the order in which they came"},
             [](const Context&, const Hit& row) { return integer(row.ref.number()); }},
            {{"time_ns", "INTEGER", "ns", "CLOCK_MONOTONIC of the target"},
             [](const Context&, const Hit& row) { return integer(row.hit().time_ns); }},
            {{"elapsed_ns", "INTEGER", "ns", "the same since the start of the session"},
             [](const Context& context, const Hit& row) { return elapsed(context, row.hit().time_ns); }},
            {{"wall_ns", "INTEGER", "ns", "the same since 1970"},
             [](const Context& context, const Hit& row) { return wall(context, row.hit().time_ns); }},
            {{"event", "TEXT", "", "event"},
             [](const Context& context, const Hit& row) { return event_name(context, row.ref.chunk->event); }},
            {{"pid", "INTEGER", "", "process"},
             [](const Context& context, const Hit& row) {
                 return integer(context.store().threads()[row.hit().thread].pid);
             }},
            {{"tid", "INTEGER", "", "thread"},
             [](const Context& context, const Hit& row) {
                 return integer(context.store().threads()[row.hit().thread].tid);
             }},
            {{"thread", "TEXT", "", "name of the thread"},
             [](const Context& context, const Hit& row) {
                 return null_if_empty(context.store().threads()[row.hit().thread].comm);
             }},
            {{"cpu", "INTEGER", "", "CPU"}, [](const Context&, const Hit& row) { return integer(row.hit().cpu); }},
            {{"weight", "INTEGER", "", "in the unit of the event; more than one event if it is thinned"},
             [](const Context&, const Hit& row) { return integer(row.hit().weight); }},
            {{"stack_id", "INTEGER", "", "its stack, as in stacks; NULL: none"},
             [](const Context&, const Hit& row) { return null_if_0(row.hit().stack); }},
        });
}

Table hit_values() {
    return table<HitValue>(
        "hit_values", "values of hits, one row for each field",
        [](const Context& context) { return context.store().hits().size() * 4; },
        [](Context& context, const Scan&) {
            return [walk = Walk(context.store()), values = &context.hit_values(), ref = HitRef(),
                    field = std::size_t{0}](HitValue& row) mutable {
                while (ref.chunk == nullptr || field >= values->fields(ref).size()) {
                    if (!walk.next(ref)) return false;
                    field = 0;
                }
                row = {ref, field++, values};
                return true;
            };
        },
        {
            {{"number", "INTEGER", "", "the hit, as in hits"},
             [](const Context&, const HitValue& row) { return integer(row.ref.number()); }},
            {{"name", "TEXT", "", "name of the field"},
             [](const Context&, const HitValue& row) {
                 return Value(std::string_view(row.values->fields(row.ref)[row.field]));
             }},
            {{"text", "TEXT", "", "value as the page shows it"},
             [](const Context&, const HitValue& row) { return Value(row.values->text(row.ref, row.field)); }},
            {{"value", "REAL", "", "value as a number; NULL: it is a text"},
             [](const Context&, const HitValue& row) {
                 const auto number = row.values->number(row.ref, row.field);
                 return number ? Value(*number) : Value();
             }},
        });
}

}  // namespace

std::vector<Table> hit_tables() { return {hits(), hit_values()}; }

}  // namespace flamewire::views::sql
