#include "profile/formats/firefox.h"

#include <fmt/format.h>
#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <vector>

#include "profile/accumulate.h"
#include "profile/formats/text.h"

namespace flamewire::profile {
namespace {

using Writer = rapidjson::Writer<rapidjson::StringBuffer>;

constexpr int format_version = 24, processed_version = 44;
constexpr std::uint32_t no_prefix = ~std::uint32_t{0};

void put_text(Writer& out, std::string_view text) {
    const std::string valid = valid_utf8(text);
    out.String(valid.data(), static_cast<rapidjson::SizeType>(valid.size()));
}
void put(Writer& out, const char* key, std::string_view text) {
    out.Key(key);
    put_text(out, text);
}
void put(Writer& out, const char* key, std::uint64_t number) {
    out.Key(key);
    out.Uint64(number);
}
template <class List, class Each>
void column(Writer& out, const char* key, const List& list, Each each) {
    out.Key(key);
    out.StartArray();
    for (const auto& one : list) each(one);
    out.EndArray();
}
// A column in which every row says the same.
template <class Put>
void same(Writer& out, const char* key, std::size_t rows, Put put_one) {
    out.Key(key);
    out.StartArray();
    for (std::size_t i = 0; i < rows; ++i) put_one();
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

struct Sample {
    std::uint64_t time_ns = 0;
    StackId stack = 0;
    Weight weight;
};

// Entries in the order in which they were first asked for.
template <class Key>
class Numbered {
public:
    std::uint32_t of(const Key& key) {
        const auto [entry, added] = numbers_.try_emplace(key, narrow32(order.size()));
        if (added) order.push_back(key);
        return entry->second;
    }
    std::vector<Key> order;

private:
    std::map<Key, std::uint32_t> numbers_;
};

// One library a module of the recording, and one for each module of its kernel.
using Library = std::pair<ModuleId, std::string>;
using Libraries = Numbered<Library>;

class ThreadWriter {
public:
    ThreadWriter(Writer& out, const Store::Tables& tables, Libraries& libraries)
        : out_(out), tables_(tables), libraries_(libraries) {}

    void write(const Event& event, const Thread& thread, bool several, const std::vector<Sample>& samples,
               std::uint64_t first_ns) {
        std::vector<std::uint32_t> stacks;
        for (const Sample& sample : samples) stacks.push_back(stack_of(sample.stack));
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
    using Func = std::tuple<FunctionId, StringId, ModuleId>;     // of a file, in a module
    using Frame = std::pair<std::uint32_t, std::uint32_t>;       // func, line
    using StackEntry = std::pair<std::uint32_t, std::uint32_t>;  // prefix, frame

    std::uint32_t stack_of(StackId stack) {
        path_.clear();
        for (; stack != 0; stack = tables_.stacks.parent(stack)) path_.push_back(stack);
        std::uint32_t prefix = no_prefix;
        for (auto step = path_.rbegin(); step != path_.rend(); ++step) {
            const LocationId location = tables_.stacks.label(*step);
            const auto frames = tables_.frames_of(location);
            for (auto frame = frames.rbegin(); frame != frames.rend(); ++frame) {
                const auto func = funcs_.of({frame->function, frame->file, tables_.locations[location].module});
                prefix = stacks_.of({prefix, frames_.of({func, frame->line})});
            }
        }
        return prefix;
    }

    void put_samples(const Event& event, const std::vector<Sample>& samples, const std::vector<std::uint32_t>& stacks,
                     std::uint64_t first_ns) {
        const bool time = event.unit == "ns", bytes = event.unit == "bytes";
        out_.Key("samples");
        out_.StartObject();
        column(out_, "stack", stacks, [&](std::uint32_t stack) { put_number(stack); });
        column(out_, "time", samples,
               [&](const Sample& one) { out_.Double(static_cast<double>(one.time_ns - first_ns) / 1e6); });
        column(out_, "weight", samples, [&](const Sample& one) {
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
        return tables_.functions[std::get<0>(funcs_.order[frames_.order[frame].first])].kind;
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
        column(out_, "prefix", stacks_.order, [&](const StackEntry& one) { put_number(one.first); });
        column(out_, "frame", stacks_.order, [&](const StackEntry& one) { out_.Uint(one.second); });
        column(out_, "category", stacks_.order,
               [&](const StackEntry& one) { out_.Uint(category_of(kind_of(one.second))); });
        same(out_, "subcategory", stacks, zero);
        put(out_, "length", stacks);
        out_.EndObject();

        out_.Key("frameTable");
        out_.StartObject();
        same(out_, "address", frames, [&] { out_.Int(-1); });
        out_.Key("inlineDepth");
        out_.StartArray();
        for (std::uint32_t i = 0; i < frames; ++i) out_.Uint(kind_of(i) == FrameKind::inlined ? 1 : 0);
        out_.EndArray();
        out_.Key("category");
        out_.StartArray();
        for (std::uint32_t i = 0; i < frames; ++i) out_.Uint(category_of(kind_of(i)));
        out_.EndArray();
        same(out_, "subcategory", frames, zero);
        column(out_, "func", frames_.order, [&](const Frame& one) { out_.Uint(one.first); });
        for (const char* key : {"nativeSymbol", "innerWindowID", "implementation", "column"})
            same(out_, key, frames, null);
        column(out_, "line", frames_.order,
               [&](const Frame& one) { put_number(one.second == 0 ? no_prefix : one.second); });
        put(out_, "length", frames);
        out_.EndObject();

        // A resource is a library here: those that the functions of the thread are in.
        Numbered<std::uint32_t> resources;
        std::vector<std::int64_t> resource_of;
        for (const auto& [function, file, module] : funcs_.order)
            resource_of.push_back(resource(function, module, resources));
        out_.Key("funcTable");
        out_.StartObject();
        column(out_, "name", funcs_.order,
               [&](const Func& one) { out_.Uint(text(tables_.strings[tables_.functions[std::get<0>(one)].name])); });
        column(out_, "fileName", funcs_.order, [&](const Func& one) {
            put_number(std::get<1>(one) == 0 ? no_prefix : text(tables_.strings[std::get<1>(one)]));
        });
        column(out_, "resource", resource_of, [&](std::int64_t one) { out_.Int64(one); });
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
        column(out_, "stringArray", strings_.order, [&](const std::string& one) { put_text(out_, one); });
    }

    std::int64_t resource(FunctionId function, ModuleId module, Numbered<std::uint32_t>& resources) {
        if (module == 0) return -1;
        const std::string_view shown = tables_.strings[tables_.functions[function].module];
        return resources.of(libraries_.of({module, shown.ends_with(".ko") ? std::string(shown) : std::string()}));
    }

    void put_resources(const std::vector<std::uint32_t>& libraries) {
        out_.Key("resourceTable");
        out_.StartObject();
        column(out_, "lib", libraries, [&](std::uint32_t one) { out_.Uint(one); });
        column(out_, "name", libraries, [&](std::uint32_t one) {
            const auto& [module, kernel_module] = libraries_.order[one];
            out_.Uint(text(kernel_module.empty() ? tables_.modules[module].name : kernel_module));
        });
        same(out_, "host", libraries.size(), [&] { out_.Null(); });
        same(out_, "type", libraries.size(), [&] { out_.Uint(1); });  // a library
        put(out_, "length", libraries.size());
        out_.EndObject();
    }

    void put_own(const Event& event, const Thread& thread, const std::vector<Sample>& samples) {
        out_.Key("flamewire");
        out_.StartObject();
        put(out_, "event", event.name);
        put(out_, "unit", event.unit);
        put(out_, "comm", thread.comm);
        column(out_, "samples", samples, [&](const Sample& one) { out_.Uint64(one.weight.samples); });
        column(out_, "weights", samples, [&](const Sample& one) { out_.Uint64(one.weight.weight); });
        out_.EndObject();
    }

    Writer& out_;
    const Store::Tables& tables_;
    Libraries& libraries_;
    std::vector<StackId> path_;
    Numbered<Func> funcs_;
    Numbered<Frame> frames_;
    Numbered<StackEntry> stacks_;
    Numbered<std::string> strings_;
};

void put_meta(Writer& out, const FirefoxOptions& options) {
    out.Key("meta");
    out.StartObject();
    out.Key("categories");
    out.StartArray();
    for (const auto& [name, color] : categories) {
        out.StartObject();
        put(out, "name", name);
        put(out, "color", color);
        column(out, "subcategories", std::initializer_list<const char*>{"Other"},
               [&](const char* one) { out.String(one); });
        out.EndObject();
    }
    out.EndArray();
    put(out, "product", options.name);
    out.Key("startTime");
    out.Double(static_cast<double>(options.started_ns) / 1e6);
    out.Key("interval");
    out.Double(1);
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

void put_libraries(Writer& out, const Store::Tables& tables, const Libraries& libraries) {
    column(out, "libs", libraries.order, [&](const Library& one) {
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

std::string firefox(const Store& store, const Filter& filter, const FirefoxOptions& options) {
    const Store::Tables& tables = store.tables();
    rapidjson::StringBuffer buffer;
    Writer out(buffer);
    Libraries libraries;
    out.StartObject();
    put_meta(out, options);
    out.Key("threads");
    out.StartArray();
    for (EventId event = 1; event < tables.events.size(); ++event) {
        if (filter.event && *filter.event != event) continue;
        Filter one = filter;
        one.event = event;
        std::vector<std::vector<Sample>> threads(tables.threads.size());
        std::uint64_t first_ns = store.first_ns();
        tables.rows.for_each(select(tables, one).rows, [&](const RowChunk& chunk, const Row& row) {
            threads[row.lane.thread].push_back({row.bucket * chunk.bucket_ns, row.stack, {row.count, row.weight}});
            first_ns = std::min(first_ns, row.bucket * chunk.bucket_ns);
        });
        for (ThreadId thread = 0; thread < threads.size(); ++thread) {
            std::vector<Sample>& samples = threads[thread];
            if (samples.empty()) continue;
            std::ranges::sort(samples, {},
                              [](const Sample& sample) { return std::pair(sample.time_ns, sample.stack); });
            ThreadWriter(out, tables, libraries)
                .write(tables.events[event], tables.threads[thread], !filter.event && tables.events.size() > 2, samples,
                       first_ns);
            samples = {};
        }
    }
    out.EndArray();
    put_libraries(out, tables, libraries);
    for (const char* key : {"pages", "counters", "profilerOverhead"}) same(out, key, 0, [] {});
    out.EndObject();
    return {buffer.GetString(), buffer.GetSize()};
}

}  // namespace flamewire::profile
