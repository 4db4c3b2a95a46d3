#include "profile/formats/chrome_events.h"

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
    sample,
    delta,
    start,
};

// A trace is an array, or an object with one; a CPU profile is an object, or the data of an event.
const JsonShape& shape() {
    static const JsonShape places{
        {"nodes[]", node},
        {"nodes[].id", node_id},
        {"nodes[].parent", node_parent},
        {"nodes[].callFrame.functionName", node_function},
        {"nodes[].callFrame.url", node_url},
        {"nodes[].callFrame.lineNumber", node_line},
        {"nodes[].children[]", node_child},
        {"samples[]", sample},
        {"timeDeltas[]", delta},
        {"startTime", start},
#define FLAMEWIRE_EVENT(path)                                                                            \
    {path, event}, {path ".ph", phase}, {path ".name", name}, {path ".ts", time}, {path ".dur", length}, \
        {path ".tdur", thread_length}, {path ".pid", pid}, {path ".tid", tid}, {path ".id", id},         \
        {path ".args.name", given_name}, {path ".args.data.cpuProfile.nodes[]", node},                   \
        {path ".args.data.cpuProfile.nodes[].id", node_id},                                              \
        {path ".args.data.cpuProfile.nodes[].parent", node_parent},                                      \
        {path ".args.data.cpuProfile.nodes[].callFrame.functionName", node_function},                    \
        {path ".args.data.cpuProfile.nodes[].callFrame.url", node_url},                                  \
        {path ".args.data.cpuProfile.nodes[].callFrame.lineNumber", node_line},                          \
        {path ".args.data.cpuProfile.samples[]", sample}, {path ".args.data.timeDeltas[]", delta}, {     \
        path ".args.data.startTime", start                                                               \
    }
        FLAMEWIRE_EVENT("[]"),
        FLAMEWIRE_EVENT("traceEvents[]"),
#undef FLAMEWIRE_EVENT
    };
    return places;
}

// Some tools write numbers as texts.
double number_of(const JsonValue& value) {
    // NaN and infinity have no place in an order.
    if (value.kind != JsonValue::Kind::text) return std::isfinite(value.number) ? value.number : 0;
    double number = 0;
    const auto [stop, error] = std::from_chars(value.text.data(), value.text.data() + value.text.size(), number);
    return error == std::errc() && stop == value.text.data() + value.text.size() && std::isfinite(number) ? number : 0;
}

std::uint32_t id_of(const JsonValue& value) {
    const double number = number_of(value);
    return number >= 0 && number <= std::numeric_limits<std::uint32_t>::max() ? static_cast<std::uint32_t>(number) : 0;
}

std::uint64_t node_of(const JsonValue& value) {
    constexpr double most = 9e15;
    const double number = number_of(value);
    return number >= 0 && number <= most ? static_cast<std::uint64_t>(number) : 0;
}

class Reader final : public JsonSink {
public:
    explicit Reader(Content& content) : content_(content) {}

    bool begin(int place) override {
        if (place == Place::event) {
            event_ = {};
            part_ = {};
            in_event_ = true;
        } else if (place == Place::node) {
            profile().nodes.emplace_back();
        }
        return true;
    }
    bool end(int place) override {
        if (place == Place::event) finish_event();
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
                event_.thread.first = id_of(value);
                break;
            case Place::tid:
                event_.thread.second = id_of(value);
                break;
            case Place::id:
                event_.id =
                    value.kind == JsonValue::Kind::text ? std::string(value.text) : std::to_string(value.number);
                break;
            case Place::sample:
                profile().samples.push_back(node_of(value));
                break;
            case Place::delta:
                profile().deltas_us.push_back(number_of(value));
                break;
            case Place::start:
                profile().start_us = number_of(value);
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

    // Of the file, or what an event brings of one: whose it is, it says last.
    CpuProfile& profile() { return in_event_ ? part_ : content_.profiles[{0, ""}]; }

    void node_value(int place, const JsonValue& value) {
        if (profile().nodes.empty()) return;
        Node& one = profile().nodes.back();
        if (place == Place::node_id) one.id = node_of(value);
        if (place == Place::node_parent) one.parent = node_of(value);
        if (place == Place::node_function) one.name = content_.texts.intern(value.text);
        if (place == Place::node_url) one.url = content_.texts.intern(value.text);
        if (place == Place::node_line) {
            // Lines count from 0 there; -1 is none.
            constexpr std::uint64_t most = std::numeric_limits<std::uint32_t>::max() - 1;
            one.line = value.number < 0 ? 0 : static_cast<std::uint32_t>(value.whole(most, most) + 1);
        }
        if (place == Place::node_child) profile().children.emplace_back(node_of(value), one.id);
    }

    void finish_event() {
        in_event_ = false;
        if (event_.name == "Profile" || event_.name == "ProfileChunk") return add_part();
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
        // The thread that is profiled sends the first part; the others come from one that only writes.
        if (event_.name == "Profile") {
            whole.thread = event_.thread;
            whole.start_us = part_.start_us;
        }
        const auto append = [](auto& to, const auto& from) { to.insert(to.end(), from.begin(), from.end()); };
        append(whole.nodes, part_.nodes);
        append(whole.samples, part_.samples);
        append(whole.deltas_us, part_.deltas_us);
    }

    Content& content_;
    Event event_;
    CpuProfile part_;
    bool in_event_ = false;
    std::uint32_t order_ = 0;
};

}  // namespace

Result<JsonEnd> read(ImportJob& job, Content& content) {
    Reader reader(content);
    return read_json(job, shape(), reader);
}

}  // namespace flamewire::profile::chrome
