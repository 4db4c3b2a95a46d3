#include "profile/formats/firefox.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <tuple>
#include <vector>

#include "profile/formats/json_put.h"
#include "profile/formats/numbered.h"
#include "profile/formats/thread_samples.h"

namespace flamewire::profile {
namespace {

constexpr int format_version = 24, processed_version = 44;
constexpr std::uint32_t no_prefix = ~std::uint32_t{0};

// A column with the same value in every row.
template <class Put>
void same(JsonOutput& out, const char* key, std::size_t rows, Put put_one) {
    out.Key(key);
    out.StartArray();
    for (std::size_t i = 0; i < rows && !out.full(); ++i) put_one();
    out.EndArray();
}

enum Category : unsigned { user, kernel, jit, unknown };
constexpr std::pair<const char*, const char*> categories[] = {
    {"User", "yellow"}, {"Kernel", "orange"}, {"JIT", "blue"}, {"Unknown", "grey"}};

Category category_of(FrameKind kind) {
    switch (kind) {
        case FrameKind::kernel:
            return kernel;
        case FrameKind::jit:
            return jit;
        case FrameKind::unknown:
            return unknown;
        default:
            return user;
    }
}

// One library per module of the recording, and one per module of its kernel.
using Library = std::pair<ModuleId, std::string>;
using Libraries = Numbered<Library>;

class ThreadWriter {
public:
    ThreadWriter(JsonOutput& out, const Store::Tables& tables, Libraries& libraries)
        : out_(out), tables_(tables), libraries_(libraries) {}

    void write(const Event& event, const Thread& thread, bool several, const std::vector<ThreadSample>& samples,
               std::uint64_t first_ns) {
        std::vector<std::uint32_t> stacks;
        stacks.reserve(samples.size());
        for (const ThreadSample& sample : samples) stacks.push_back(stack_of(sample.stack));
        out_.StartObject();
        put(out_, "name", several ? fmt::format("{} {}", thread.comm, event.name) : std::string(thread.comm));
        put(out_, "processType", "default");
        put(out_, "processName", thread.process == 0 ? std::string_view{} : tables_.processes[thread.process].comm);
        out_.Key("processStartupTime");
        out_.Double(0);
        out_.Key("processShutdownTime");
        out_.Null();
        out_.Key("registerTime");
        out_.Double(0);
        out_.Key("unregisterTime");
        out_.Null();
        same(out_, "pausedRanges", 0, [] {});
        put(out_, "pid", std::to_string(thread.pid));
        put(out_, "tid", std::uint64_t{thread.tid});
        out_.Key("isMainThread");
        out_.Bool(thread.pid == thread.tid);
        put_samples(event, samples, stacks, first_ns);
        put_tables();
        put_own(event, thread, samples);
        out_.EndObject();
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
        out_.Key("samples");
        out_.StartObject();
        put_list(out_, "stack", stacks, [&](std::uint32_t stack) { put_number(stack); });
        put_list(out_, "time", samples,
                 [&](const ThreadSample& one) { out_.Double(static_cast<double>(one.time_ns - first_ns) / 1e6); });
        put_list(out_, "weight", samples, [&](const ThreadSample& one) {
            if (time)
                out_.Double(static_cast<double>(one.weight.weight) / 1e6);
            else
                out_.Uint64(bytes ? one.weight.weight : one.weight.samples);
        });
        put(out_, "weightType", time ? "tracing-ms" : bytes ? "bytes" : "samples");
        put(out_, "length", samples.size());
        out_.EndObject();
    }

    void put_number(std::uint32_t number) {
        if (number == no_prefix)
            out_.Null();
        else
            out_.Uint(number);
    }
    [[nodiscard]] FrameKind kind_of(std::uint32_t frame) const {
        return tables_.functions[std::get<0>(funcs_.order[frames_.order[frame].func])].kind;
    }
    std::uint32_t text(std::string_view string) { return strings_.of(std::string(string)); }

    void put_tables() {
        const auto null = [&] { out_.Null(); };
        const auto zero = [&] { out_.Uint(0); };
        out_.Key("markers");
        out_.StartObject();
        for (const char* key : {"data", "name", "startTime", "endTime", "phase", "category"}) same(out_, key, 0, null);
        put(out_, "length", std::uint64_t{0});
        out_.EndObject();

        const std::size_t stacks = stacks_.order.size(), frames = frames_.order.size(), funcs = funcs_.order.size();
        out_.Key("stackTable");
        out_.StartObject();
        put_list(out_, "prefix", stacks_.order, [&](const StackEntry& one) { put_number(one.first); });
        put_list(out_, "frame", stacks_.order, [&](const StackEntry& one) { out_.Uint(one.second); });
        put_list(out_, "category", stacks_.order,
                 [&](const StackEntry& one) { out_.Uint(category_of(kind_of(one.second))); });
        same(out_, "subcategory", stacks, zero);
        put(out_, "length", stacks);
        out_.EndObject();

        out_.Key("frameTable");
        out_.StartObject();
        same(out_, "address", frames, [&] { out_.Int(-1); });
        put_list(out_, "inlineDepth", frames_.order, [&](const Frame& one) { out_.Uint(one.inline_depth); });
        out_.Key("category");
        out_.StartArray();
        for (std::uint32_t i = 0; i < frames; ++i) out_.Uint(category_of(kind_of(i)));
        out_.EndArray();
        same(out_, "subcategory", frames, zero);
        put_list(out_, "func", frames_.order, [&](const Frame& one) { out_.Uint(one.func); });
        for (const char* key : {"nativeSymbol", "innerWindowID", "implementation", "column"})
            same(out_, key, frames, null);
        put_list(out_, "line", frames_.order,
                 [&](const Frame& one) { put_number(one.line == 0 ? no_prefix : one.line); });
        put(out_, "length", frames);
        out_.EndObject();

        // Resources are libraries here: those that contain the thread's functions.
        Numbered<std::uint32_t> resources;
        std::vector<std::int64_t> resource_of;
        resource_of.reserve(funcs_.order.size());
        for (const auto& [function, file, module] : funcs_.order)
            resource_of.push_back(resource(function, module, resources));
        out_.Key("funcTable");
        out_.StartObject();
        put_list(out_, "name", funcs_.order,
                 [&](const Func& one) { out_.Uint(text(tables_.strings[tables_.functions[std::get<0>(one)].name])); });
        put_list(out_, "fileName", funcs_.order, [&](const Func& one) {
            put_number(std::get<1>(one) == 0 ? no_prefix : text(tables_.strings[std::get<1>(one)]));
        });
        put_list(out_, "resource", resource_of, [&](std::int64_t one) { out_.Int64(one); });
        for (const char* key : {"isJS", "relevantForJS"}) same(out_, key, funcs, [&] { out_.Bool(false); });
        for (const char* key : {"lineNumber", "columnNumber"}) same(out_, key, funcs, null);
        put(out_, "length", funcs);
        out_.EndObject();
        put_resources(resources.order);

        out_.Key("nativeSymbols");
        out_.StartObject();
        for (const char* key : {"libIndex", "address", "name", "functionSize"}) same(out_, key, 0, null);
        put(out_, "length", std::uint64_t{0});
        out_.EndObject();
        put_list(out_, "stringArray", strings_.order, [&](const std::string& one) { put_text(out_, one); });
    }

    std::int64_t resource(FunctionId function, ModuleId module, Numbered<std::uint32_t>& resources) {
        if (module == 0) return -1;
        const std::string_view shown = tables_.strings[tables_.functions[function].module];
        return resources.of(libraries_.of({module, shown.ends_with(".ko") ? std::string(shown) : std::string()}));
    }

    void put_resources(const std::vector<std::uint32_t>& libraries) {
        out_.Key("resourceTable");
        out_.StartObject();
        put_list(out_, "lib", libraries, [&](std::uint32_t one) { out_.Uint(one); });
        put_list(out_, "name", libraries, [&](std::uint32_t one) {
            const auto& [module, kernel_module] = libraries_.order[one];
            out_.Uint(text(kernel_module.empty() ? tables_.modules[module].name : kernel_module));
        });
        same(out_, "host", libraries.size(), [&] { out_.Null(); });
        same(out_, "type", libraries.size(), [&] { out_.Uint(1); });  // a library
        put(out_, "length", libraries.size());
        out_.EndObject();
    }

    void put_own(const Event& event, const Thread& thread, const std::vector<ThreadSample>& samples) {
        out_.Key("flamewire");
        out_.StartObject();
        put(out_, "event", event.name);
        put(out_, "unit", event.unit);
        put(out_, "comm", thread.comm);
        put_list(out_, "samples", samples, [&](const ThreadSample& one) { out_.Uint64(one.weight.samples); });
        put_list(out_, "weights", samples, [&](const ThreadSample& one) { out_.Uint64(one.weight.weight); });
        out_.Key("returns");
        out_.StartArray();
        for (std::uint32_t i = 0; i < frames_.order.size(); ++i)
            if (frames_.order[i].returns) out_.Uint(i);
        out_.EndArray();
        out_.EndObject();
    }

    JsonOutput& out_;
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

void put_meta(JsonOutput& out, const FirefoxOptions& options, double interval,
              std::optional<std::size_t> first_thread) {
    out.Key("meta");
    out.StartObject();
    out.Key("categories");
    out.StartArray();
    for (const auto& [name, color] : categories) {
        out.StartObject();
        put(out, "name", name);
        put(out, "color", color);
        put_list(out, "subcategories", std::initializer_list<const char*>{"Other"},
                 [&](const char* one) { out.String(one); });
        out.EndObject();
    }
    out.EndArray();
    put(out, "product", options.name);
    put(out, "importedFrom", "Flamewire");
    // The profile has no JavaScript and no Firefox sources, so the viewer hides controls for these.
    for (const char* key : {"usesOnlyOneStackType", "sourceCodeIsNotOnSearchfox"}) {
        out.Key(key);
        out.Bool(true);
    }
    if (first_thread)
        put_list(out, "initialSelectedThreads", std::initializer_list<std::size_t>{*first_thread},
                 [&](std::size_t one) { out.Uint64(one); });
    if (!options.tags.empty())
        put_list(out, "extra", std::initializer_list<const char*>{"Tags"}, [&](const char* title) {
            out.StartObject();
            put(out, "label", title);
            put_list(out, "entries", options.tags, [&](const std::pair<std::string, std::string>& tag) {
                out.StartObject();
                put(out, "label", tag.first);
                put(out, "format", "string");
                put(out, "value", tag.second);
                out.EndObject();
            });
            out.EndObject();
        });
    out.Key("startTime");
    out.Double(static_cast<double>(options.started_ns) / 1e6);
    out.Key("interval");
    out.Double(interval);
    out.Key("debug");
    out.Bool(false);
    out.Key("stackwalk");
    out.Uint(1);
    out.Key("processType");
    out.Uint(0);
    out.Key("version");
    out.Int(format_version);
    out.Key("preprocessedProfileVersion");
    out.Int(processed_version);
    out.Key("symbolicated");
    out.Bool(true);
    same(out, "markerSchema", 0, [] {});
    out.Key("sampleUnits");
    out.StartObject();
    put(out, "time", "ms");
    put(out, "eventDelay", "ms");
    put(out, "threadCPUDelta", "ns");
    out.EndObject();
    out.EndObject();
}

void put_libraries(JsonOutput& out, const Store::Tables& tables, const Libraries& libraries) {
    put_list(out, "libs", libraries.order, [&](const Library& one) {
        const Module& module = tables.modules[one.first];
        const bool kernel = module.identity.kind == symbol::ModuleKind::kernel;
        const std::string_view path = !one.second.empty() ? std::string_view(one.second)
                                      : kernel            ? std::string_view("[kernel.kallsyms]")
                                                          : std::string_view(module.identity.path);
        std::string build_id;
        for (const char byte : module.identity.build_id)
            build_id += fmt::format("{:02x}", static_cast<unsigned char>(byte));
        out.StartObject();
        for (const char* key : {"name", "debugName"}) put(out, key, path.substr(path.rfind('/') + 1));
        for (const char* key : {"path", "debugPath"}) put(out, key, path);
        put(out, "arch", "");
        put(out, "breakpadId", "");
        put(out, "codeId", build_id);
        out.EndObject();
    });
}

}  // namespace

Result<std::string> firefox(const Store& store, const Filter& filter, const FirefoxOptions& options) {
    const Store::Tables& tables = store.tables();
    JsonBuffer buffer(options.max_bytes);
    JsonOutput out(buffer);
    Libraries libraries;
    out.StartObject();
    const std::vector<EventId> events = events_of(store, filter);
    put_meta(out, options, events.empty() ? 1 : interval_ms(tables.events[events.front()]),
             busiest_thread(store, filter));
    out.Key("threads");
    out.StartArray();
    for (const EventId event : events) {
        const std::vector<ThreadSamples> threads = thread_samples(store, filter, event);
        std::uint64_t first_ns = store.first_ns();
        for (const ThreadSamples& one : threads) first_ns = std::min(first_ns, one.samples.front().time_ns);
        for (const auto& [thread, samples] : threads)
            if (!out.full())
                ThreadWriter(out, tables, libraries)
                    .write(tables.events[event], tables.threads[thread], events.size() > 1, samples, first_ns);
    }
    out.EndArray();
    put_libraries(out, tables, libraries);
    for (const char* key : {"pages", "counters", "profilerOverhead"}) same(out, key, 0, [] {});
    out.EndObject();
    return buffer.take("a profile for the Firefox Profiler");
}

}  // namespace flamewire::profile
