// The tables of what samples refer to: events, functions, modules, processes and threads.
#include "base/cgroup_path.h"
#include "base/hex.h"
#include "profile/formats/json.h"
#include "views/sql/row_texts.h"
#include "views/sql/tables.h"

namespace flamewire::views::sql {
namespace {

const profile::Event& event_of(const Context& context, std::size_t id) { return context.store().events()[id]; }

Table events() {
    using Id = std::size_t;
    return table<Id>(
        "events", "what was sampled", [](const Context& context) { return context.store().events().size(); },
        [](const Context& context, const Scan& scan) { return ids(scan, "", context.store().events().size()); },
        {
            {{"event", "TEXT", "", "name of the event"},
             [](const Context& context, const Id& id) { return Value(std::string_view(event_of(context, id).name)); }},
            {{"unit", "TEXT", "", "unit of weights"},
             [](const Context& context, const Id& id) { return Value(std::string_view(event_of(context, id).unit)); }},
            {{"frequency_hz", "INTEGER", "Hz", "requested samples per second"},
             [](const Context& context, const Id& id) { return null_if_0(event_of(context, id).frequency_hz); }},
            {{"period", "INTEGER", "unit", "requested weight between two samples"},
             [](const Context& context, const Id& id) { return null_if_0(event_of(context, id).period); }},
            {{"samples", "INTEGER", "", "number of samples"},
             [](const Context& context, const Id& id) {
                 return integer(context.store().total(static_cast<profile::EventId>(id)).samples);
             }},
            {{"weight", "INTEGER", "unit", "sum of their weights"},
             [](const Context& context, const Id& id) {
                 return integer(context.store().total(static_cast<profile::EventId>(id)).weight);
             }},
        });
}

// The functions of each event, or of the one that the scan wants.
class EventFunctions {
public:
    EventFunctions(Context& context, const Scan& scan) : context_(context), only_(scan.text("event")) {}
    bool next(EventFunction& function) {
        const auto events = context_.store().events();
        for (;;) {
            if (rows_ != nullptr && row_ < rows_->size()) {
                function = {static_cast<profile::EventId>(event_), static_cast<std::uint32_t>(row_), (*rows_)[row_]};
                ++row_;
                return true;
            }
            row_ = 0;
            if (++event_ >= events.size()) return false;
            const bool wanted = !only_ || events[event_].name == *only_;
            rows_ = wanted ? &context_.functions(static_cast<profile::EventId>(event_)) : nullptr;
        }
    }

private:
    Context& context_;
    std::optional<std::string> only_;
    const std::vector<profile::FunctionRow>* rows_ = nullptr;
    std::size_t event_ = 0, row_ = 0;
};

Table functions() {
    using Row = EventFunction;
    return table<Row>(
        "functions", "functions of each event, by self weight, as flamewire report lists them",
        [](const Context& context) {
            constexpr std::size_t guess = 2000;
            return context.store().events().size() * guess;
        },
        [](Context& context, const Scan& scan) {
            return [functions = EventFunctions(context, scan)](Row& row) mutable { return functions.next(row); };
        },
        {
            {{"event", "TEXT", "", "name of the event", Key::many},
             [](const Context& context, const Row& row) { return event_name(context, row.event); }},
            {{"unit", "TEXT", "", "unit of weights"},
             [](const Context& context, const Row& row) { return event_unit(context, row.event); }},
            {{"function", "TEXT", "", "function"},
             [](const Context& context, const Row& row) { return context.text(row.row.function.name); }},
            {{"module", "TEXT", "", "program or library, without directories"},
             [](const Context& context, const Row& row) { return context.text(row.row.function.module); }},
            {{"kind", "TEXT", "", "user, kernel, jit, inlined or unknown"},
             [](const Context&, const Row& row) { return Value(profile::kind_name(row.row.function.kind)); }},
            {{"file", "TEXT", "", "source file"},
             [](const Context& context, const Row& row) { return context.text(row.row.function.file); }},
            {{"line", "INTEGER", "", "line of its declaration, or its first line seen"},
             [](const Context&, const Row& row) { return null_if_0(row.row.function.line); }},
            {{"self_samples", "INTEGER", "", "samples with the function innermost"},
             [](const Context&, const Row& row) { return integer(row.row.self.samples); }},
            {{"self_weight", "INTEGER", "unit", "their weight"},
             [](const Context&, const Row& row) { return integer(row.row.self.weight); }},
            {{"total_samples", "INTEGER", "", "samples with the function anywhere on the stack"},
             [](const Context&, const Row& row) { return integer(row.row.total.samples); }},
            {{"total_weight", "INTEGER", "unit", "their weight"},
             [](const Context&, const Row& row) { return integer(row.row.total.weight); }},
        });
}

std::string_view kind_name(symbol::ModuleKind kind) {
    switch (kind) {
        case symbol::ModuleKind::file: return "file";
        case symbol::ModuleKind::kernel: return "kernel";
        case symbol::ModuleKind::vdso: return "vdso";
        case symbol::ModuleKind::jit: break;
    }
    return "jit";
}

const profile::Module& module_of(const Context& context, std::size_t id) { return context.store().modules()[id]; }

Table modules() {
    using Id = std::size_t;
    return table<Id>(
        "modules", "programs, libraries and other code",
        [](const Context& context) { return context.store().modules().size(); },
        [](const Context& context, const Scan& scan) {
            return ids(scan, "module_id", context.store().modules().size());
        },
        {
            {{"module_id", "INTEGER", "", "number of the module", Key::one},
             [](const Context&, const Id& id) { return integer(id); }},
            {{"module", "TEXT", "", "name without directories"},
             [](const Context& context, const Id& id) { return null_if_empty(module_of(context, id).name); }},
            {{"path", "TEXT", "", "path on the target"},
             [](const Context& context, const Id& id) { return null_if_empty(module_of(context, id).identity.path); }},
            {{"kind", "TEXT", "", "file, kernel, vdso or jit"},
             [](const Context& context, const Id& id) {
                 return Value(kind_name(module_of(context, id).identity.kind));
             }},
            {{"build_id", "TEXT", "", "build-id, in hex"},
             [](const Context& context, const Id& id) {
                 const std::string& bytes = module_of(context, id).identity.build_id;
                 return bytes.empty() ? Value() : Value(to_hex(bytes));
             }},
            {{"size", "INTEGER", "bytes", "size of the file on the target"},
             [](const Context& context, const Id& id) { return null_if_0(module_of(context, id).identity.size); }},
            {{"symbol_file", "TEXT", "", "file that its names come from"},
             [](const Context& context, const Id& id) {
                 const auto& reports = context.profile().reports;
                 const auto found = reports.find(static_cast<profile::ModuleId>(id));
                 return found == reports.end() ? Value() : null_if_empty(found->second.file);
             }},
            {{"symbol_problem", "TEXT", "", "why its names are not better"},
             [](const Context& context, const Id& id) {
                 const auto& reports = context.profile().reports;
                 const auto found = reports.find(static_cast<profile::ModuleId>(id));
                 return found == reports.end() ? Value() : null_if_empty(found->second.problem);
             }},
        });
}

const profile::Process& process_of(const Context& context, std::size_t id) { return context.store().processes()[id]; }

Table processes() {
    using Id = std::size_t;
    return table<Id>(
        "processes", "processes; one that called exec has several rows",
        [](const Context& context) { return context.store().processes().size(); },
        [](const Context& context, const Scan& scan) {
            return ids(scan, "process_id", context.store().processes().size());
        },
        {
            {{"process_id", "INTEGER", "", "number of the process", Key::one},
             [](const Context&, const Id& id) { return integer(id); }},
            {{"pid", "INTEGER", "", "process id on the target"},
             [](const Context& context, const Id& id) { return integer(process_of(context, id).wire.pid); }},
            {{"container_pid", "INTEGER", "", "process id in its own pid namespace"},
             [](const Context& context, const Id& id) { return null_if_0(process_of(context, id).wire.ns_pid); }},
            {{"parent_pid", "INTEGER", "", "parent process"},
             [](const Context& context, const Id& id) { return null_if_0(process_of(context, id).wire.parent_pid); }},
            {{"process", "TEXT", "", "name"},
             [](const Context& context, const Id& id) { return null_if_empty(process_of(context, id).comm); }},
            {{"exe", "TEXT", "", "path of its program"},
             [](const Context& context, const Id& id) { return null_if_empty(process_of(context, id).exe); }},
            {{"command_line", "TEXT", "", "command and arguments"},
             [](const Context& context, const Id& id) { return null_if_empty(process_of(context, id).command_line); }},
            {{"cgroup", "TEXT", "", "path of its control group"},
             [](const Context& context, const Id& id) { return null_if_empty(process_of(context, id).cgroup); }},
            {{"container", "TEXT", "", "id or name of its container"},
             [](const Context& context, const Id& id) { return null_if_empty(process_of(context, id).container_id); }},
            {{"pod", "TEXT", "", "id of its pod"},
             [](const Context& context, const Id& id) -> Value {
                 std::string pod = parse_cgroup_path(process_of(context, id).cgroup).pod_uid;
                 return pod.empty() ? Value() : Value(std::move(pod));
             }},
            {{"unwind", "TEXT", "", "how its stacks were unwound: fp, hybrid, dwarf or lbr"},
             [](const Context& context, const Id& id) {
                 const auto& unwind = process_of(context, id).unwind;
                 return unwind ? Value(profile::mode_name(unwind->mode)) : Value();
             }},
        });
}

const profile::Thread& thread_of(const Context& context, std::size_t id) { return context.store().threads()[id]; }

Table threads() {
    using Id = std::size_t;
    return table<Id>(
        "threads", "threads", [](const Context& context) { return context.store().threads().size(); },
        [](const Context& context, const Scan& scan) {
            return ids(scan, "thread_id", context.store().threads().size());
        },
        {
            {{"thread_id", "INTEGER", "", "number of the thread", Key::one},
             [](const Context&, const Id& id) { return integer(id); }},
            {{"process_id", "INTEGER", "", "row of the table processes"},
             [](const Context& context, const Id& id) { return null_if_0(thread_of(context, id).process); }},
            {{"pid", "INTEGER", "", "process id on the target"},
             [](const Context& context, const Id& id) { return integer(thread_of(context, id).pid); }},
            {{"tid", "INTEGER", "", "thread id on the target"},
             [](const Context& context, const Id& id) { return integer(thread_of(context, id).tid); }},
            {{"thread", "TEXT", "", "latest name"},
             [](const Context& context, const Id& id) { return null_if_empty(thread_of(context, id).comm); }},
            {{"ended_ns", "INTEGER", "ns", "when it exited, CLOCK_MONOTONIC of the target; NULL: not reported"},
             [](const Context& context, const Id& id) { return null_if_0(thread_of(context, id).ended_ns); }},
        });
}

}  // namespace

std::vector<Table> name_tables() { return {events(), functions(), modules(), processes(), threads()}; }

}  // namespace flamewire::views::sql
