#include "profile/formats/speedscope.h"

#include <fmt/format.h>

#include <span>
#include <vector>

#include "base/hex.h"
#include "profile/formats/bounded_json.h"
#include "profile/formats/json.h"
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

void put_stack(BoundedJson& out, Shared& shared, StackId stack) {
    out.array();
    shared.for_frames(stack, [&](const LocationFrame& frame, LocationId location) {
        if (!out.full()) out.number(shared.number_of(frame, location));
    });
    out.end_array();
}

void put_profile(BoundedJson& out, Shared& shared, const Event& event, const Thread& thread,
                 const std::vector<ThreadSample>& samples) {
    std::uint64_t sum = 0;
    for (const ThreadSample& sample : samples) sum += sample.weight.weight;
    out.object();
    out.member("type", "sampled");
    std::string name = event.name;
    if (!thread.comm.empty()) name += fmt::format(" {}", thread.comm);
    if (thread.tid != 0) name += fmt::format(" ({})", thread.tid);
    out.member("name", name);
    out.member("unit", unit_word(event.unit));
    out.member("startValue", 0);
    out.member("endValue", sum);
    out.bounded_list("samples", samples, [&](const ThreadSample& sample) { put_stack(out, shared, sample.stack); });
    out.bounded_list("weights", samples, [&](const ThreadSample& sample) { out.number(sample.weight.weight); });
    out.object("flamewire");
    out.member("event", event.name);
    out.member("unit", event.unit);
    out.member("pid", thread.pid);
    out.member("tid", thread.tid);
    out.member("comm", thread.comm);
    out.bounded_list("samples", samples, [&](const ThreadSample& sample) { out.number(sample.weight.samples); });
    out.bounded_list("times_ms", samples, [&](const ThreadSample& sample) {
        out.number((sample.time_ns - samples.front().time_ns) / 1'000'000);
    });
    out.member("first_ms", samples.front().time_ns / 1'000'000);
    out.bounded_list("lines", samples, [&](const ThreadSample& sample) { out.number(shared.stacks.of(sample.stack)); });
    out.end_object();
    out.end_object();
}

void put_shared(BoundedJson& out, Shared& shared) {
    const Store::Tables& tables = shared.tables;
    out.object("shared");
    out.bounded_list("frames", shared.frames.order, [&](const Frame& one) {
        const Function& function = tables.functions[one.function];
        out.object();
        out.member("name", tables.strings[function.name]);
        if (one.file != 0) out.member("file", tables.strings[one.file]);
        if (function.line != 0 && function.file == one.file) out.member("line", function.line);
        out.object("flamewire");
        out.member("module", tables.strings[function.module]);
        out.member("kind", kind_name(function.kind));
        if (one.module != 0) {
            const symbol::ModuleIdentity& module = tables.modules[one.module].identity;
            out.member("path", module.path);
            out.member("build_id", to_hex(module.build_id));
        }
        if (one.returns) out.member("returns", 1);
        out.end_object();
        out.end_object();
    });
    out.object("flamewire");
    out.bounded_list("lines", shared.stacks.order, [&](StackId stack) {
        out.array();
        shared.for_frames(stack, [&](const LocationFrame& frame, LocationId) {
            if (!out.full()) out.number(frame.line);
        });
        out.end_array();
    });
    out.end_object();
    out.end_object();
}

}  // namespace

Result<std::string> speedscope(const Store& store, const Filter& filter, std::string_view name, std::size_t max_bytes) {
    const Store::Tables& tables = store.tables();
    BoundedText text(max_bytes);
    BoundedJson out(text);
    Shared shared(tables);
    out.object();
    out.member("$schema", "https://www.speedscope.app/file-format-schema.json");
    out.member("name", name);
    out.member("exporter", "flamewire");
    if (const auto first = busiest_thread(store, filter)) out.member("activeProfileIndex", *first);
    out.array("profiles");
    for (const EventId event : events_of(store, filter))
        for (const auto& [thread, samples] : thread_samples(store, filter, event))
            if (!out.full()) put_profile(out, shared, tables.events[event], tables.threads[thread], samples);
    out.end_array();
    put_shared(out, shared);
    out.end_object();
    return text.take("a profile for speedscope");
}

}  // namespace flamewire::profile
