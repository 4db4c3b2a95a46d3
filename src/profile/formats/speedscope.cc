#include "profile/formats/speedscope.h"

#include <fmt/format.h>

#include <unordered_map>
#include <vector>

#include "profile/formats/json.h"
#include "profile/formats/json_put.h"
#include "profile/formats/thread_samples.h"

namespace flamewire::profile {
namespace {

std::string_view unit_word(std::string_view unit) {
    return unit == "ns" ? "nanoseconds" : unit == "bytes" ? "bytes" : "none";
}

// A frame of the format: a function at a line of a file.
struct FrameTable {
    const Store::Tables& tables;
    std::unordered_map<std::uint64_t, std::vector<std::pair<LocationFrame, std::uint32_t>>> known;
    std::vector<LocationFrame> frames;

    std::uint32_t of(const LocationFrame& frame) {
        auto& same = known[(std::uint64_t{frame.function} << 32) | frame.line];
        for (const auto& [other, index] : same)
            if (other == frame) return index;
        const auto index = narrow32(frames.size());
        frames.push_back(frame);
        same.emplace_back(frame, index);
        return index;
    }
};

void put_stack(JsonOutput& out, const Store::Tables& tables, FrameTable& frames, StackId stack,
               std::vector<std::uint32_t>& path) {
    path.clear();
    for (; stack != 0; stack = tables.stacks.parent(stack))
        for (const LocationFrame& frame : tables.frames_of(tables.stacks.label(stack)))
            path.push_back(frames.of(frame));
    out.StartArray();
    for (auto frame = path.rbegin(); frame != path.rend(); ++frame) out.Uint(*frame);
    out.EndArray();
}

void put_profile(JsonOutput& out, const Store::Tables& tables, FrameTable& frames, const Event& event,
                 const Thread& thread, const std::vector<ThreadSample>& samples) {
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
    std::vector<std::uint32_t> path;
    put_list(out, "samples", samples,
             [&](const ThreadSample& sample) { put_stack(out, tables, frames, sample.stack, path); });
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
    out.EndObject();
    out.EndObject();
}

void put_frames(JsonOutput& out, const Store::Tables& tables, const FrameTable& frames) {
    out.Key("shared");
    out.StartObject();
    put_list(out, "frames", frames.frames, [&](const LocationFrame& frame) {
        const Function& function = tables.functions[frame.function];
        out.StartObject();
        put(out, "name", tables.strings[function.name]);
        if (frame.file != 0) put(out, "file", tables.strings[frame.file]);
        if (frame.line != 0) put(out, "line", std::uint64_t{frame.line});
        out.Key("flamewire");
        out.StartObject();
        put(out, "module", tables.strings[function.module]);
        put(out, "kind", kind_name(function.kind));
        out.EndObject();
        out.EndObject();
    });
    out.EndObject();
}

}  // namespace

std::string speedscope(const Store& store, const Filter& filter, std::string_view name) {
    const Store::Tables& tables = store.tables();
    rapidjson::StringBuffer buffer;
    JsonOutput out(buffer);
    FrameTable frames{tables, {}, {}};
    out.StartObject();
    put(out, "$schema", "https://www.speedscope.app/file-format-schema.json");
    put(out, "name", name);
    put(out, "exporter", "flamewire");
    out.Key("profiles");
    out.StartArray();
    for (const EventId event : events_of(store, filter))
        for (const auto& [thread, samples] : thread_samples(store, filter, event))
            put_profile(out, tables, frames, tables.events[event], tables.threads[thread], samples);
    out.EndArray();
    put_frames(out, tables, frames);
    out.EndObject();
    return {buffer.GetString(), buffer.GetSize()};
}

}  // namespace flamewire::profile
