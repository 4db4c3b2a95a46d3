#include "profile/formats/chrome_events.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <limits>

namespace flamewire::profile::chrome {
namespace {

enum Place : int {
    event = 1,
    phase,
    name,
    time,
    length,
    thread_length,
    pid,
    tid,
    id,
    given_name,
    node,
    node_id,
    node_parent,
    node_function,
    node_url,
    node_line,
    node_child,
    node_hits,
    tree,
    tree_line,
    sample,
    sample_pid,
    sample_tid,
    sample_time,
    sample_frame,
    delta,
    sample_at,
    start,
    end_time,
    stack_frame,
    frame_name,
    frame_parent,
};

// A trace is an array, or an object that contains one. A CPU profile is an object, or the data of an event.
const JsonShape& shape() {
// Until 2016 V8 wrote the tree as nested nodes (`head`), with times in `timestamps`.
#define FLAMEWIRE_PROFILE(path)                                                                                      \
    {path "nodes[]", node}, {path "nodes[].id", node_id}, {path "nodes[].parent", node_parent},                      \
        {path "nodes[].callFrame.functionName", node_function}, {path "nodes[].callFrame.url", node_url},            \
        {path "nodes[].callFrame.lineNumber", node_line}, {path "nodes[].children[]", node_child},                   \
        {path "nodes[].hitCount", node_hits}, {path "head", tree}, {path "head.id", node_id},                        \
        {path "head.functionName", node_function}, {path "head.url", node_url}, {path "head.lineNumber", tree_line}, \
        {path "head.hitCount", node_hits}, {path "head.children[]", 0, path "head"}, {path "samples[]", sample},     \
        {path "timestamps[]", sample_at}, {path "timeDeltas[]", delta}, {path "startTime", start}, {                 \
        path "endTime", end_time                                                                                     \
    }
#define FLAMEWIRE_EVENT(path)                                                                            \
    {path, event}, {path ".ph", phase}, {path ".name", name}, {path ".ts", time}, {path ".dur", length}, \
        {path ".tdur", thread_length}, {path ".pid", pid}, {path ".tid", tid}, {path ".id", id},         \
        {path ".args.name", given_name}, FLAMEWIRE_PROFILE(path ".args.data.cpuProfile."),               \
        {path ".args.data.timeDeltas[]", delta}, {path ".args.data.startTime", start}, {                 \
        path ".args.data.endTime", end_time                                                              \
    }
    static const JsonShape places{
        FLAMEWIRE_PROFILE(""),
        FLAMEWIRE_EVENT("[]"),
        FLAMEWIRE_EVENT("traceEvents[]"),
        // Samples of a trace, from Hermes and other tools.
        {"samples[].pid", sample_pid},
        {"samples[].tid", sample_tid},
        {"samples[].ts", sample_time},
        {"samples[].sf", sample_frame},
        {"stackFrames.*", stack_frame},
        {"stackFrames.*.name", frame_name},
        {"stackFrames.*.parent", frame_parent},
    };
#undef FLAMEWIRE_EVENT
#undef FLAMEWIRE_PROFILE
    return places;
}

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

class Reader final : public JsonSink {
public:
    explicit Reader(Content& content) : content_(content) {}

    void key(int /*place*/, std::string_view text) override {
        content_.stack_frames.nodes.push_back({.id = content_.texts.intern(text)});
    }
    bool begin(int place) override {
        switch (place) {
            case Place::event:
                event_ = {};
                part_ = {};
                in_event_ = true;
                break;
            case Place::node:
                profile().tree.nodes.emplace_back();
                break;
            case Place::tree:
                begin_tree_node();
                break;
            case Place::sample:
                sample_ = {};
                break;
            default:
                break;
        }
        return true;
    }
    bool end(int place) override {
        if (place == Place::event) finish_event();
        if (place == Place::tree) end_tree_node();
        if (place == Place::sample) add_sample();
        return true;
    }
    bool value(int place, const JsonValue& value) override {
        switch (place) {
            case Place::phase:
                event_.phase = value.text.size() == 1 ? value.text[0] : '\0';
                break;
            case Place::name:
                event_.name = value.text;
                break;
            case Place::given_name:
                event_.given_name = value.text;
                break;
            case Place::time:
                event_.time_us = number_of(value);
                break;
            case Place::length:
                event_.length_us = number_of(value);
                break;
            case Place::thread_length:
                if (event_.length_us == 0) event_.length_us = number_of(value);
                break;
            case Place::pid:
                event_.thread.first = text_of(value);
                break;
            case Place::tid:
                event_.thread.second = text_of(value);
                break;
            case Place::id:
                event_.id =
                    value.kind == JsonValue::Kind::text ? std::string(value.text) : std::to_string(value.number);
                break;
            case Place::sample:
                profile().samples.nodes.push_back(node_of(value));
                break;
            case Place::sample_at:
                profile().samples.times_us.push_back(number_of(value));
                break;
            case Place::delta:
                profile().samples.deltas_us.push_back(number_of(value));
                break;
            case Place::start:
                profile().samples.start_us = number_of(value);
                break;
            case Place::end_time:
                profile().samples.end_us = number_of(value);
                break;
            case Place::sample_pid:
                sample_.thread.first = text_of(value);
                break;
            case Place::sample_tid:
                sample_.thread.second = text_of(value);
                break;
            case Place::sample_time:
                sample_.time_us = number_of(value);
                break;
            case Place::sample_frame:
                sample_.frame = text_of(value);
                break;
            case Place::frame_name:
                content_.stack_frames.nodes.back().name = content_.texts.intern(value.text);
                break;
            case Place::frame_parent:
                content_.stack_frames.nodes.back().parent = text_of(value);
                break;
            default:
                node_value(place, value);
        }
        return true;
    }

private:
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

    void node_value(int place, const JsonValue& value) {
        if (profile().tree.nodes.empty()) return;
        std::vector<Node>& nodes = profile().tree.nodes;
        Node& one = open_.empty() ? nodes.back() : nodes[open_.back()];
        constexpr std::uint64_t most = std::numeric_limits<std::uint32_t>::max() - 1;
        if (place == Place::node_id) one.id = node_of(value);
        if (place == Place::node_parent) one.parent = node_of(value);
        if (place == Place::node_function) one.name = content_.texts.intern(value.text);
        if (place == Place::node_url) one.url = content_.texts.intern(value.text);
        if (place == Place::node_hits) one.hits = count_of(value);
        // Lines of nodes are 0-based, with -1 for none. Lines of the tree are 1-based.
        if (place == Place::node_line)
            one.line = value.number < 0 ? 0 : static_cast<std::uint32_t>(value.whole(most, most) + 1);
        if (place == Place::tree_line) one.line = count_of(value);
        if (place == Place::node_child) profile().tree.children.emplace_back(node_of(value), one.id);
    }

    void add_sample() {
        Samples& samples = content_.samples[sample_.thread];
        samples.thread = sample_.thread;
        if (samples.nodes.empty()) samples.start_us = sample_.time_us;
        samples.nodes.push_back(sample_.frame);
        samples.times_us.push_back(sample_.time_us);
    }

    void finish_event() {
        in_event_ = false;
        if (event_.name == "Profile" || event_.name == "ProfileChunk") return add_part();
        if (event_.name == "CpuProfile") {  // the whole profile in one event
            event_.id = fmt::format("CpuProfile {}", content_.profiles.size());
            event_.name = "Profile";
            return add_part();
        }
        switch (event_.phase) {
            case 'B':
            case 'E':
            case 'X':
                content_.spans[event_.thread].push_back(
                    {event_.time_us, event_.length_us, content_.texts.intern(event_.name), event_.phase, order_++});
                break;
            case 'M':
                if (event_.name == "thread_name")
                    content_.thread_names[event_.thread] = content_.texts.intern(event_.given_name);
                if (event_.name == "process_name")
                    content_.process_names[event_.thread.first] = content_.texts.intern(event_.given_name);
                break;
            default:
                ++content_.other_events;
        }
    }

    void add_part() {
        CpuProfile& whole = content_.profiles[{event_.thread.first, event_.id}];
        // The profiled thread sends the first part. A writer thread sends the other parts.
        if (event_.name == "Profile") {
            whole.samples.thread = event_.thread;
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
    Event event_;
    Sample sample_;
    CpuProfile part_;
    bool in_event_ = false;
    std::vector<std::size_t> open_;                              // open nodes of a tree, from the root
    std::map<std::size_t, std::vector<std::uint64_t>> waiting_;  // by depth: finished children of open nodes
    std::uint32_t order_ = 0;
};

}  // namespace

Result<JsonEnd> read(ImportJob& job, Content& content) {
    Reader reader(content);
    return read_json(job, shape(), reader);
}

}  // namespace flamewire::profile::chrome
