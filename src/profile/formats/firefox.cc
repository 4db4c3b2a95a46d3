#include "profile/formats/firefox.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <tuple>
#include <vector>

#include "profile/formats/bounded_json.h"
#include "profile/formats/numbered.h"
#include "profile/formats/thread_samples.h"

namespace flamewire::profile {
namespace {

constexpr int format_version = 24, processed_version = 44;
constexpr std::uint32_t no_prefix = ~std::uint32_t{0};

// A column with the same value in every row.
template <class Put>
void same(BoundedJson& out, const char* key, std::size_t rows, Put put_one) {
    out.array(key);
    for (std::size_t i = 0; i < rows && !out.full(); ++i) put_one();
    out.end_array();
}

enum Category : unsigned { user, kernel, jit, unknown };
constexpr std::pair<const char*, const char*> categories[] = {
    {"User", "yellow"}, {"Kernel", "orange"}, {"JIT", "blue"}, {"Unknown", "grey"}};

unsigned category_of(FrameKind kind) {
    switch (kind) {
        case FrameKind::kernel: return kernel;
        case FrameKind::jit: return jit;
        case FrameKind::unknown: return unknown;
        default: return user;
    }
}

// One library per module of the recording, and one per module of its kernel.
using Library = std::pair<ModuleId, std::string>;
using Libraries = Numbered<Library>;

class ThreadWriter {
public:
    ThreadWriter(BoundedJson& out, const Store::Tables& tables, Libraries& libraries)
        : out_(out), tables_(tables), libraries_(libraries) {}

    void write(const Event& event, const Thread& thread, bool several, const std::vector<ThreadSample>& samples,
               std::uint64_t first_ns) {
        std::vector<std::uint32_t> stacks;
        stacks.reserve(samples.size());
        for (const ThreadSample& sample : samples) stacks.push_back(stack_of(sample.stack));
        out_.object();
        out_.member("name", several ? fmt::format("{} {}", thread.comm, event.name) : std::string(thread.comm));
        out_.member("processType", "default");
        out_.member("processName", thread.process == 0 ? std::string_view{} : tables_.processes[thread.process].comm);
        out_.member("processStartupTime", 0.0);
        out_.member("processShutdownTime", nullptr);
        out_.member("registerTime", 0.0);
        out_.member("unregisterTime", nullptr);
        same(out_, "pausedRanges", 0, [] {});
        out_.member("pid", std::to_string(thread.pid));
        out_.member("tid", thread.tid);
        out_.member("isMainThread", thread.pid == thread.tid);
        put_samples(event, samples, stacks, first_ns);
        put_tables();
        put_own(event, thread, samples);
        out_.end_object();
    }

private:
    using Func = std::tuple<FunctionId, StringId, ModuleId>;  // function, file, module
    struct Frame {
        std::uint32_t func = 0, line = 0, inline_depth = 0;
        bool returns = false;  // an unnamed return address
        auto operator<=>(const Frame&) const = default;
    };
    using StackEntry = std::pair<std::uint32_t, std::uint32_t>;  // prefix, frame

    std::uint32_t stack_of(StackId stack) {
        path_.clear();
        for (; stack != 0; stack = tables_.stacks.parent(stack)) path_.push_back(stack);
        std::uint32_t prefix = no_prefix, depth = 0;
        for (auto step = path_.rbegin(); step != path_.rend(); ++step) {
            const LocationId location = tables_.stacks.label(*step);
            const auto frames = tables_.frames_of(location);
            for (auto frame = frames.rbegin(); frame != frames.rend(); ++frame) {
                const auto func = funcs_.of({frame->function, frame->file, tables_.locations[location].module});
                const FrameKind kind = tables_.functions[frame->function].kind;
                // The inline depth. The function into which frames are inlined has depth 0.
                depth = kind == FrameKind::inlined ? depth + 1 : 0;
                const bool returns =
                    kind == FrameKind::unknown && tables_.locations[location].code_address().return_address;
                prefix = stacks_.of({prefix, frames_.of({func, frame->line, depth, returns})});
            }
        }
        return prefix;
    }

    void put_samples(const Event& event, const std::vector<ThreadSample>& samples,
                     const std::vector<std::uint32_t>& stacks, std::uint64_t first_ns) {
        const bool time = event.unit == "ns", bytes = event.unit == "bytes";
        out_.object("samples");
        out_.bounded_list("stack", stacks, [&](std::uint32_t stack) { put_number(stack); });
        out_.bounded_list("time", samples, [&](const ThreadSample& one) {
            out_.number(static_cast<double>(one.time_ns - first_ns) / 1e6);
        });
        out_.bounded_list("weight", samples, [&](const ThreadSample& one) {
            if (time)
                out_.number(static_cast<double>(one.weight.weight) / 1e6);
            else
                out_.number(bytes ? one.weight.weight : one.weight.samples);
        });
        out_.member("weightType", time ? "tracing-ms" : bytes ? "bytes" : "samples");
        out_.member("length", samples.size());
        out_.end_object();
    }

    void put_number(std::uint32_t number) {
        if (number == no_prefix)
            out_.null();
        else
            out_.number(number);
    }
    [[nodiscard]] FrameKind kind_of(std::uint32_t frame) const {
        return tables_.functions[std::get<0>(funcs_.order[frames_.order[frame].func])].kind;
    }
    std::uint32_t text(std::string_view string) { return strings_.of(std::string(string)); }

    void put_tables() {
        const auto null = [&] { out_.null(); };
        const auto zero = [&] { out_.number(0); };
        out_.object("markers");
        for (const char* key : {"data", "name", "startTime", "endTime", "phase", "category"}) same(out_, key, 0, null);
        out_.member("length", 0);
        out_.end_object();

        const std::size_t stacks = stacks_.order.size(), frames = frames_.order.size(), funcs = funcs_.order.size();
        out_.object("stackTable");
        out_.bounded_list("prefix", stacks_.order, [&](const StackEntry& one) { put_number(one.first); });
        out_.bounded_list("frame", stacks_.order, [&](const StackEntry& one) { out_.number(one.second); });
        out_.bounded_list("category", stacks_.order,
                          [&](const StackEntry& one) { out_.number(category_of(kind_of(one.second))); });
        same(out_, "subcategory", stacks, zero);
        out_.member("length", stacks);
        out_.end_object();

        out_.object("frameTable");
        same(out_, "address", frames, [&] { out_.number(-1); });
        out_.bounded_list("inlineDepth", frames_.order, [&](const Frame& one) { out_.number(one.inline_depth); });
        out_.array("category");
        for (std::uint32_t i = 0; i < frames; ++i) out_.number(category_of(kind_of(i)));
        out_.end_array();
        same(out_, "subcategory", frames, zero);
        out_.bounded_list("func", frames_.order, [&](const Frame& one) { out_.number(one.func); });
        for (const char* key : {"nativeSymbol", "innerWindowID", "implementation", "column"})
            same(out_, key, frames, null);
        out_.bounded_list("line", frames_.order,
                          [&](const Frame& one) { put_number(one.line == 0 ? no_prefix : one.line); });
        out_.member("length", frames);
        out_.end_object();

        // Resources are libraries here: those that contain the thread's functions.
        Numbered<std::uint32_t> resources;
        std::vector<std::int64_t> resource_of;
        resource_of.reserve(funcs_.order.size());
        for (const auto& [function, file, module] : funcs_.order)
            resource_of.push_back(resource(function, module, resources));
        out_.object("funcTable");
        out_.bounded_list("name", funcs_.order, [&](const Func& one) {
            out_.number(text(tables_.strings[tables_.functions[std::get<0>(one)].name]));
        });
        out_.bounded_list("fileName", funcs_.order, [&](const Func& one) {
            put_number(std::get<1>(one) == 0 ? no_prefix : text(tables_.strings[std::get<1>(one)]));
        });
        out_.bounded_list("resource", resource_of, [&](std::int64_t one) { out_.number(one); });
        for (const char* key : {"isJS", "relevantForJS"}) same(out_, key, funcs, [&] { out_.boolean(false); });
        for (const char* key : {"lineNumber", "columnNumber"}) same(out_, key, funcs, null);
        out_.member("length", funcs);
        out_.end_object();
        put_resources(resources.order);

        out_.object("nativeSymbols");
        for (const char* key : {"libIndex", "address", "name", "functionSize"}) same(out_, key, 0, null);
        out_.member("length", 0);
        out_.end_object();
        out_.bounded_list("stringArray", strings_.order, [&](const std::string& one) { out_.text(one); });
    }

    std::int64_t resource(FunctionId function, ModuleId module, Numbered<std::uint32_t>& resources) {
        if (module == 0) return -1;
        const std::string_view shown = tables_.strings[tables_.functions[function].module];
        return resources.of(libraries_.of({module, shown.ends_with(".ko") ? std::string(shown) : std::string()}));
    }

    void put_resources(const std::vector<std::uint32_t>& libraries) {
        out_.object("resourceTable");
        out_.bounded_list("lib", libraries, [&](std::uint32_t one) { out_.number(one); });
        out_.bounded_list("name", libraries, [&](std::uint32_t one) {
            const auto& [module, kernel_module] = libraries_.order[one];
            out_.number(text(kernel_module.empty() ? tables_.modules[module].name : kernel_module));
        });
        same(out_, "host", libraries.size(), [&] { out_.null(); });
        same(out_, "type", libraries.size(), [&] { out_.number(1); });  // a library
        out_.member("length", libraries.size());
        out_.end_object();
    }

    void put_own(const Event& event, const Thread& thread, const std::vector<ThreadSample>& samples) {
        out_.object("flamewire");
        out_.member("event", event.name);
        out_.member("unit", event.unit);
        out_.member("comm", thread.comm);
        out_.bounded_list("samples", samples, [&](const ThreadSample& one) { out_.number(one.weight.samples); });
        out_.bounded_list("weights", samples, [&](const ThreadSample& one) { out_.number(one.weight.weight); });
        out_.array("returns");
        for (std::uint32_t i = 0; i < frames_.order.size(); ++i)
            if (frames_.order[i].returns) out_.number(i);
        out_.end_array();
        out_.end_object();
    }

    BoundedJson& out_;
    const Store::Tables& tables_;
    Libraries& libraries_;
    std::vector<StackId> path_;
    Numbered<Func> funcs_;
    Numbered<Frame> frames_;
    Numbered<StackEntry> stacks_;
    Numbered<std::string> strings_;
};

// Milliseconds between two samples of an event, if known.
double interval_ms(const Event& event) {
    if (event.unit == "ns" && event.period > 0) return static_cast<double>(event.period) / 1e6;
    return event.frequency_hz > 0 ? 1000.0 / event.frequency_hz : 1;
}

void put_meta(BoundedJson& out, const FirefoxOptions& options, double interval,
              std::optional<std::size_t> first_thread) {
    out.object("meta");
    out.array("categories");
    for (const auto& [name, color] : categories) {
        out.object();
        out.member("name", name);
        out.member("color", color);
        out.bounded_list("subcategories", std::initializer_list<const char*>{"Other"},
                         [&](const char* one) { out.text(one); });
        out.end_object();
    }
    out.end_array();
    out.member("product", options.name);
    out.member("importedFrom", "Flamewire");
    // The profile has no JavaScript and no Firefox sources, so the viewer hides controls for these.
    for (const char* key : {"usesOnlyOneStackType", "sourceCodeIsNotOnSearchfox"}) {
        out.member(key, true);
    }
    if (first_thread)
        out.bounded_list("initialSelectedThreads", std::initializer_list<std::size_t>{*first_thread},
                         [&](std::size_t one) { out.number(one); });
    if (!options.tags.empty())
        out.bounded_list("extra", std::initializer_list<const char*>{"Tags"}, [&](const char* title) {
            out.object();
            out.member("label", title);
            out.bounded_list("entries", options.tags, [&](const std::pair<std::string, std::string>& tag) {
                out.object();
                out.member("label", tag.first);
                out.member("format", "string");
                out.member("value", tag.second);
                out.end_object();
            });
            out.end_object();
        });
    out.member("startTime", static_cast<double>(options.started_ns) / 1e6);
    out.member("interval", interval);
    out.member("debug", false);
    out.member("stackwalk", 1);
    out.member("processType", 0);
    out.member("version", format_version);
    out.member("preprocessedProfileVersion", processed_version);
    out.member("symbolicated", true);
    same(out, "markerSchema", 0, [] {});
    out.object("sampleUnits");
    out.member("time", "ms");
    out.member("eventDelay", "ms");
    out.member("threadCPUDelta", "ns");
    out.end_object();
    out.end_object();
}

void put_libraries(BoundedJson& out, const Store::Tables& tables, const Libraries& libraries) {
    out.bounded_list("libs", libraries.order, [&](const Library& one) {
        const Module& module = tables.modules[one.first];
        const bool kernel = module.identity.kind == symbol::ModuleKind::kernel;
        const std::string_view path = !one.second.empty() ? std::string_view(one.second)
                                      : kernel            ? std::string_view("[kernel.kallsyms]")
                                                          : std::string_view(module.identity.path);
        std::string build_id;
        for (const char byte : module.identity.build_id)
            build_id += fmt::format("{:02x}", static_cast<unsigned char>(byte));
        out.object();
        for (const char* key : {"name", "debugName"}) out.member(key, path.substr(path.rfind('/') + 1));
        for (const char* key : {"path", "debugPath"}) out.member(key, path);
        out.member("arch", "");
        out.member("breakpadId", "");
        out.member("codeId", build_id);
        out.end_object();
    });
}

}  // namespace

Result<std::string> firefox(const Store& store, const Filter& filter, const FirefoxOptions& options) {
    const Store::Tables& tables = store.tables();
    BoundedText text(options.max_bytes);
    BoundedJson out(text);
    Libraries libraries;
    out.object();
    const std::vector<EventId> events = events_of(store, filter);
    put_meta(out, options, events.empty() ? 1 : interval_ms(tables.events[events.front()]),
             busiest_thread(store, filter));
    out.array("threads");
    for (const EventId event : events) {
        const std::vector<ThreadSamples> threads = thread_samples(store, filter, event);
        std::uint64_t first_ns = store.first_ns();
        for (const ThreadSamples& one : threads) first_ns = std::min(first_ns, one.samples.front().time_ns);
        for (const auto& [thread, samples] : threads)
            if (!out.full())
                ThreadWriter(out, tables, libraries)
                    .write(tables.events[event], tables.threads[thread], events.size() > 1, samples, first_ns);
    }
    out.end_array();
    put_libraries(out, tables, libraries);
    for (const char* key : {"pages", "counters", "profilerOverhead"}) same(out, key, 0, [] {});
    out.end_object();
    return text.take("a profile for the Firefox Profiler");
}

}  // namespace flamewire::profile
