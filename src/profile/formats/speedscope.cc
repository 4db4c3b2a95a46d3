#include "profile/formats/speedscope.h"

#include <fmt/format.h>

#include <span>
#include <vector>

#include "base/hex.h"
#include "profile/formats/json.h"
#include "profile/formats/json_put.h"
#include "profile/formats/numbered.h"
#include "profile/formats/thread_samples.h"

namespace flamewire::profile {
namespace {

std::string_view unit_word(std::string_view unit) {
    return unit == "ns" ? "nanoseconds" : unit == "bytes" ? "bytes" : "none";
}

// speedscope adds up equal frames, so a frame of the format is a function in a file. The line numbers within functions
// are written as a separate list per stack.
struct Frame {
    FunctionId function = 0;
    StringId file = 0;
    // For addresses without a name, so that an import can resolve them again.
    ModuleId module = 0;
    bool returns = false;
    auto operator<=>(const Frame&) const = default;
};

// Tables that the profiles of a file share.
struct Shared {
    explicit Shared(const Store::Tables& of_store) : tables(of_store) {}

    const Store::Tables& tables;
    Numbered<Frame> frames;
    Numbered<StackId> stacks;

    // Calls `each` for every frame, outermost first.
    template <class Each>
    void for_frames(StackId stack, Each each) {
        path_.clear();
        for (; stack != 0; stack = tables.stacks.parent(stack)) path_.push_back(tables.stacks.label(stack));
        for (auto location = path_.rbegin(); location != path_.rend(); ++location) {
            const std::span<const LocationFrame> list = tables.frames_of(*location);
            for (auto frame = list.rbegin(); frame != list.rend(); ++frame) each(*frame, *location);
        }
    }
    std::uint32_t number_of(const LocationFrame& frame, LocationId location) {
        if (tables.functions[frame.function].kind != FrameKind::unknown)
            return frames.of({frame.function, frame.file, 0, false});
        const Location& at = tables.locations[location];
        return frames.of({frame.function, frame.file, at.module, at.code_address().return_address});
    }

private:
    std::vector<LocationId> path_;
};

void put_stack(JsonOutput& out, Shared& shared, StackId stack) {
    out.StartArray();
    shared.for_frames(stack, [&](const LocationFrame& frame, LocationId location) {
        if (!out.full()) out.Uint(shared.number_of(frame, location));
    });
    out.EndArray();
}

void put_profile(JsonOutput& out, Shared& shared, const Event& event, const Thread& thread,
                 const std::vector<ThreadSample>& samples) {
    std::uint64_t sum = 0;
    for (const ThreadSample& sample : samples) sum += sample.weight.weight;
    out.StartObject();
    put(out, "type", "sampled");
    std::string name = event.name;
    if (!thread.comm.empty()) name += fmt::format(" {}", thread.comm);
    if (thread.tid != 0) name += fmt::format(" ({})", thread.tid);
    put(out, "name", name);
    put(out, "unit", unit_word(event.unit));
    put(out, "startValue", std::uint64_t{0});
    put(out, "endValue", sum);
    put_list(out, "samples", samples, [&](const ThreadSample& sample) { put_stack(out, shared, sample.stack); });
    put_list(out, "weights", samples, [&](const ThreadSample& sample) { out.Uint64(sample.weight.weight); });
    out.Key("flamewire");
    out.StartObject();
    put(out, "event", event.name);
    put(out, "unit", event.unit);
    put(out, "pid", std::uint64_t{thread.pid});
    put(out, "tid", std::uint64_t{thread.tid});
    put(out, "comm", thread.comm);
    put_list(out, "samples", samples, [&](const ThreadSample& sample) { out.Uint64(sample.weight.samples); });
    put_list(out, "times_ms", samples,
             [&](const ThreadSample& sample) { out.Uint64((sample.time_ns - samples.front().time_ns) / 1'000'000); });
    put(out, "first_ms", samples.front().time_ns / 1'000'000);
    put_list(out, "lines", samples, [&](const ThreadSample& sample) { out.Uint(shared.stacks.of(sample.stack)); });
    out.EndObject();
    out.EndObject();
}

void put_shared(JsonOutput& out, Shared& shared) {
    const Store::Tables& tables = shared.tables;
    out.Key("shared");
    out.StartObject();
    put_list(out, "frames", shared.frames.order, [&](const Frame& one) {
        const Function& function = tables.functions[one.function];
        out.StartObject();
        put(out, "name", tables.strings[function.name]);
        if (one.file != 0) put(out, "file", tables.strings[one.file]);
        if (function.line != 0 && function.file == one.file) put(out, "line", std::uint64_t{function.line});
        out.Key("flamewire");
        out.StartObject();
        put(out, "module", tables.strings[function.module]);
        put(out, "kind", kind_name(function.kind));
        if (one.module != 0) {
            const symbol::ModuleIdentity& module = tables.modules[one.module].identity;
            put(out, "path", module.path);
            put(out, "build_id", to_hex(module.build_id));
        }
        if (one.returns) put(out, "returns", std::uint64_t{1});
        out.EndObject();
        out.EndObject();
    });
    out.Key("flamewire");
    out.StartObject();
    put_list(out, "lines", shared.stacks.order, [&](StackId stack) {
        out.StartArray();
        shared.for_frames(stack, [&](const LocationFrame& frame, LocationId) {
            if (!out.full()) out.Uint(frame.line);
        });
        out.EndArray();
    });
    out.EndObject();
    out.EndObject();
}

}  // namespace

Result<std::string> speedscope(const Store& store, const Filter& filter, std::string_view name, std::size_t max_bytes) {
    const Store::Tables& tables = store.tables();
    JsonBuffer buffer(max_bytes);
    JsonOutput out(buffer);
    Shared shared(tables);
    out.StartObject();
    put(out, "$schema", "https://www.speedscope.app/file-format-schema.json");
    put(out, "name", name);
    put(out, "exporter", "flamewire");
    if (const auto first = busiest_thread(store, filter)) put(out, "activeProfileIndex", std::uint64_t{*first});
    out.Key("profiles");
    out.StartArray();
    for (const EventId event : events_of(store, filter))
        for (const auto& [thread, samples] : thread_samples(store, filter, event))
            if (!out.full()) put_profile(out, shared, tables.events[event], tables.threads[thread], samples);
    out.EndArray();
    put_shared(out, shared);
    out.EndObject();
    return buffer.take("a profile for speedscope");
}

}  // namespace flamewire::profile
