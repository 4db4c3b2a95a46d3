#include "profile/formats/chrome_events.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <limits>

#include "profile/formats/json_fields.h"

namespace flamewire::profile::chrome {
namespace {

// Some tools write numbers as text.
double number_of(const JsonValue& value) {
    // NaN and infinity cannot be sorted.
    if (value.kind != JsonValue::Kind::text) return std::isfinite(value.number) ? value.number : 0;
    double number = 0;
    const auto [stop, error] = std::from_chars(value.text.data(), value.text.data() + value.text.size(), number);
    return error == std::errc() && stop == value.text.data() + value.text.size() && std::isfinite(number) ? number : 0;
}

std::uint64_t node_of(const JsonValue& value) {
    constexpr double most = 9e15;
    const double number = number_of(value);
    return number >= 0 && number <= most ? static_cast<std::uint64_t>(number) : 0;
}

std::uint32_t count_of(const JsonValue& value) {
    constexpr std::uint64_t most = std::numeric_limits<std::uint32_t>::max();
    return static_cast<std::uint32_t>(value.whole(most, 0));
}

struct Event {
    std::string name, given_name, id;
    char phase = 0;
    double time_us = 0, length_us = 0;
    ThreadKey thread{0, 0};
};
struct Sample {
    ThreadKey thread{0, 0};
    double time_us = 0;
    StringId frame = 0;
};

class Reader {
public:
    explicit Reader(Content& content) : content_(content) {}

    Event event;
    Sample sample;

    void begin_event() {
        event = {};
        part_ = {};
        in_event_ = true;
    }
    void begin_stack_frame(std::string_view id) {
        content_.stack_frames.nodes.push_back({.id = content_.texts.intern(id)});
    }
    Node& stack_frame() { return content_.stack_frames.nodes.back(); }
    StringId intern(const JsonValue& value) { return content_.texts.intern(value.text); }

    // The profile of the file, or the part of it in this event. The event's thread and id can follow the part.
    CpuProfile& profile() { return in_event_ ? part_ : content_.profiles[{0, ""}]; }

    // The number 12 and the text "12" are the same id.
    StringId text_of(const JsonValue& value) {
        if (value.kind == JsonValue::Kind::text) return content_.texts.intern(value.text);
        if (value.kind != JsonValue::Kind::number) return 0;
        return content_.texts.intern(fmt::format("{}", value.number));
    }

    void begin_tree_node() {
        CallTree& all = profile().tree;
        profile().in_seconds = true;
        open_.push_back(all.nodes.size());
        all.nodes.emplace_back();
    }
    // The id of a node can follow its children. The oldest trees have no ids.
    void end_tree_node() {
        CallTree& all = profile().tree;
        constexpr std::uint64_t beyond_ids = 10'000'000'000'000'000;
        const std::size_t index = open_.back();
        open_.pop_back();
        Node& one = all.nodes[index];
        if (one.id == 0) one.id = beyond_ids + index;
        for (const std::uint64_t child : waiting_[open_.size() + 1]) all.children.emplace_back(child, one.id);
        waiting_[open_.size() + 1].clear();
        if (!open_.empty()) waiting_[open_.size()].push_back(one.id);
    }

    // The node that is being read. Without one, the value goes to a node that is not used.
    Node& node() {
        std::vector<Node>& nodes = profile().tree.nodes;
        if (nodes.empty()) return no_node_;
        return open_.empty() ? nodes.back() : nodes[open_.back()];
    }
    void add_child(std::uint64_t child) {
        CallTree& tree = profile().tree;
        if (!tree.nodes.empty()) tree.children.emplace_back(child, node().id);
    }

    void add_sample() {
        Samples& samples = content_.samples[sample.thread];
        samples.thread = sample.thread;
        if (samples.nodes.empty()) samples.start_us = sample.time_us;
        samples.nodes.push_back(sample.frame);
        samples.times_us.push_back(sample.time_us);
    }

    void finish_event() {
        in_event_ = false;
        if (event.name == "Profile" || event.name == "ProfileChunk") return add_part();
        if (event.name == "CpuProfile") {  // the whole profile in one event
            event.id = fmt::format("CpuProfile {}", content_.profiles.size());
            event.name = "Profile";
            return add_part();
        }
        switch (event.phase) {
            case 'B':
            case 'E':
            case 'X':
                content_.spans[event.thread].push_back(
                    {event.time_us, event.length_us, content_.texts.intern(event.name), event.phase, order_++});
                break;
            case 'M':
                if (event.name == "thread_name")
                    content_.thread_names[event.thread] = content_.texts.intern(event.given_name);
                if (event.name == "process_name")
                    content_.process_names[event.thread.first] = content_.texts.intern(event.given_name);
                break;
            default: ++content_.other_events;
        }
    }

private:
    void add_part() {
        CpuProfile& whole = content_.profiles[{event.thread.first, event.id}];
        // The profiled thread sends the first part. A writer thread sends the other parts.
        if (event.name == "Profile") {
            whole.samples.thread = event.thread;
            whole.samples.start_us = part_.samples.start_us;
            whole.in_seconds = part_.in_seconds;
        }
        if (part_.samples.end_us != 0) whole.samples.end_us = part_.samples.end_us;
        const auto append = [](auto& to, const auto& from) { to.insert(to.end(), from.begin(), from.end()); };
        append(whole.tree.nodes, part_.tree.nodes);
        append(whole.tree.children, part_.tree.children);
        append(whole.samples.nodes, part_.samples.nodes);
        append(whole.samples.deltas_us, part_.samples.deltas_us);
        append(whole.samples.times_us, part_.samples.times_us);
    }

    Content& content_;
    Node no_node_;
    CpuProfile part_;
    bool in_event_ = false;
    std::vector<std::size_t> open_;                              // open nodes of a tree, from the root
    std::map<std::size_t, std::vector<std::uint64_t>> waiting_;  // by depth: finished children of open nodes
    std::uint32_t order_ = 0;
};

using Value = const JsonValue&;
using Fields = std::vector<JsonField<Reader>>;

void ignore(Reader& /*in*/, Value /*value*/) {}
void name_node(Reader& in, Value value) { in.node().name = in.intern(value); }
void locate_node(Reader& in, Value value) { in.node().url = in.intern(value); }
void identify_node(Reader& in, Value value) { in.node().id = node_of(value); }
void count_node(Reader& in, Value value) { in.node().hits = count_of(value); }
void add_delta(Reader& in, Value value) { in.profile().samples.deltas_us.push_back(number_of(value)); }
void set_start(Reader& in, Value value) { in.profile().samples.start_us = number_of(value); }
void set_end(Reader& in, Value value) { in.profile().samples.end_us = number_of(value); }

// A CPU profile is an object, or the data of an event. Until 2016 V8 wrote the tree as nested nodes (`head`), with times
// in `timestamps`. Lines of nodes are 0-based, with -1 for none. Lines of the tree are 1-based.
Fields profile_fields() {
    return {
        {"nodes[]", ignore, [](Reader& in) { in.profile().tree.nodes.emplace_back(); }},
        {"nodes[].id", identify_node},
        {"nodes[].parent", [](Reader& in, Value value) { in.node().parent = node_of(value); }},
        {"nodes[].callFrame.functionName", name_node},
        {"nodes[].callFrame.url", locate_node},
        {"nodes[].callFrame.lineNumber",
         [](Reader& in, Value value) {
             constexpr std::uint64_t most = no_index - 1;
             in.node().line = value.number < 0 ? 0 : static_cast<std::uint32_t>(value.whole(most, most) + 1);
         }},
        {"nodes[].children[]", [](Reader& in, Value value) { in.add_child(node_of(value)); }},
        {"nodes[].hitCount", count_node},
        {"head", ignore, [](Reader& in) { in.begin_tree_node(); }, [](Reader& in) { in.end_tree_node(); }},
        {"head.id", identify_node},
        {"head.functionName", name_node},
        {"head.url", locate_node},
        {"head.lineNumber", [](Reader& in, Value value) { in.node().line = count_of(value); }},
        {"head.hitCount", count_node},
        {.path = "head.children[]", .same_as = "head"},
        {"samples[]", [](Reader& in, Value value) { in.profile().samples.nodes.push_back(node_of(value)); },
         [](Reader& in) { in.sample = {}; }, [](Reader& in) { in.add_sample(); }},
        {"timestamps[]", [](Reader& in, Value value) { in.profile().samples.times_us.push_back(number_of(value)); }},
        {"timeDeltas[]", add_delta},
        {"startTime", set_start},
        {"endTime", set_end},
    };
}

Fields event_fields() {
    Fields all{
        {"", ignore, [](Reader& in) { in.begin_event(); }, [](Reader& in) { in.finish_event(); }},
        {".ph", [](Reader& in, Value value) { in.event.phase = value.text.size() == 1 ? value.text[0] : '\0'; }},
        {".name", [](Reader& in, Value value) { in.event.name = value.text; }},
        {".ts", [](Reader& in, Value value) { in.event.time_us = number_of(value); }},
        {".dur", [](Reader& in, Value value) { in.event.length_us = number_of(value); }},
        {".tdur",
         [](Reader& in, Value value) {
             if (in.event.length_us == 0) in.event.length_us = number_of(value);
         }},
        {".pid", [](Reader& in, Value value) { in.event.thread.first = in.text_of(value); }},
        {".tid", [](Reader& in, Value value) { in.event.thread.second = in.text_of(value); }},
        {".id",
         [](Reader& in, Value value) {
             const bool text = value.kind == JsonValue::Kind::text;
             in.event.id = text ? std::string(value.text) : std::to_string(value.number);
         }},
        {".args.name", [](Reader& in, Value value) { in.event.given_name = value.text; }},
        {".args.data.timeDeltas[]", add_delta},
        {".args.data.startTime", set_start},
        {".args.data.endTime", set_end},
    };
    append(all, ".args.data.cpuProfile.", profile_fields());
    return all;
}

// A trace is an array, or an object that contains one. Hermes and other tools add samples and their stacks.
Fields make_fields() {
    Fields all = profile_fields();
    append(all, "[]", event_fields());
    append(all, "traceEvents[]", event_fields());
    append(all, "",
           Fields{
               {"samples[].pid", [](Reader& in, Value value) { in.sample.thread.first = in.text_of(value); }},
               {"samples[].tid", [](Reader& in, Value value) { in.sample.thread.second = in.text_of(value); }},
               {"samples[].ts", [](Reader& in, Value value) { in.sample.time_us = number_of(value); }},
               {"samples[].sf", [](Reader& in, Value value) { in.sample.frame = in.text_of(value); }},
               {.path = "stackFrames.*", .key = [](Reader& in, std::string_view id) { in.begin_stack_frame(id); }},
               {"stackFrames.*.name", [](Reader& in, Value value) { in.stack_frame().name = in.intern(value); }},
               {"stackFrames.*.parent", [](Reader& in, Value value) { in.stack_frame().parent = in.text_of(value); }},
           });
    return all;
}

}  // namespace

Result<JsonEnd> read(ImportJob& job, Content& content) {
    static const Fields fields = make_fields();
    Reader reader(content);
    return JsonFields(fields, reader).read(job);
}

}  // namespace flamewire::profile::chrome
