// The order of members in a file is not fixed, so stacks are kept as numbers until all frames are known. This takes a
// few bytes per number of the file.
#include <fmt/format.h>

#include <cmath>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "profile/formats/import_names.h"
#include "profile/formats/json.h"
#include "profile/formats/json_fields.h"
#include "profile/formats/speedscope.h"
#include "profile/formats/timed_frames.h"

namespace flamewire::profile {
namespace {

struct Frame {
    std::string name, file, module, kind, path, build_id;
    std::uint32_t line = 0;
    bool returns = false;
};
struct Change {
    double at = 0;
    std::uint32_t frame = no_index;
    bool opens = false;
};
// Lists of numbers, stored contiguously.
struct Lists {
    std::vector<std::uint32_t> numbers;
    std::vector<std::size_t> ends;

    void close() { ends.push_back(numbers.size()); }
    [[nodiscard]] std::span<const std::uint32_t> operator[](std::size_t list) const {
        if (list >= ends.size()) return {};
        const std::size_t begin = list == 0 ? 0 : ends[list - 1];
        return std::span(numbers).subspan(begin, ends[list] - begin);
    }
};
struct Profile {
    std::string type, name, unit, own_event, own_unit, own_comm;
    double start = 0;
    Lists stacks;                      // frames, outermost first
    std::vector<std::uint32_t> lines;  // per sample: index into the file's lists of lines
    std::vector<double> weights, samples, times_ms;
    std::vector<Change> changes;
    double first_ms = 0;
    std::uint32_t pid = 0, tid = 0;
};

struct File {
    std::string title;
    std::vector<Frame> frames;
    Lists lines;
    std::vector<Profile> profiles;

    File& current(File* /*type*/) { return *this; }
    Frame& current(Frame* /*type*/) { return frames.back(); }
    Profile& current(Profile* /*type*/) { return profiles.back(); }
    Change& current(Change* /*type*/) { return profiles.back().changes.back(); }
    Lists& current(Lists* /*type*/) { return profiles.back().stacks; }
};

const std::vector<JsonField<File>>& fields() {
    static const std::vector<JsonField<File>> all{
        {"name", set<&File::title>},
        {"shared.frames[]", nullptr, [](File& in) { in.frames.emplace_back(); }},
        {"shared.frames[].name", set<&Frame::name>},
        {"shared.frames[].file", set<&Frame::file>},
        {"shared.frames[].line", set<&Frame::line>},
        {"shared.frames[].flamewire.module", set<&Frame::module>},
        {"shared.frames[].flamewire.kind", set<&Frame::kind>},
        {"shared.frames[].flamewire.path", set<&Frame::path>},
        {"shared.frames[].flamewire.build_id",
         [](File& in, const JsonValue& value) { in.frames.back().build_id = build_id_of(value.text); }},
        {"shared.frames[].flamewire.returns",
         [](File& in, const JsonValue& value) { in.frames.back().returns = value.whole(no_index, 0) != 0; }},
        {"shared.flamewire.lines[]", nullptr, nullptr, [](File& in) { in.lines.close(); }},
        {"shared.flamewire.lines[][]",
         [](File& in, const JsonValue& value) { store_value(in.lines.numbers.emplace_back(), value); }},
        {"profiles[]", nullptr, [](File& in) { in.profiles.emplace_back(); }},
        {"profiles[].type", set<&Profile::type>},
        {"profiles[].name", set<&Profile::name>},
        {"profiles[].unit", set<&Profile::unit>},
        {"profiles[].startValue", set<&Profile::start>},
        {"profiles[].samples[]", nullptr, nullptr, [](File& in) { in.profiles.back().stacks.close(); }},
        {"profiles[].samples[][]", set<&Lists::numbers>},
        {"profiles[].weights[]", set<&Profile::weights>},
        {"profiles[].events[]", nullptr, [](File& in) { in.profiles.back().changes.emplace_back(); }},
        {"profiles[].events[].type",
         [](File& in, const JsonValue& value) { in.profiles.back().changes.back().opens = value.text == "O"; }},
        {"profiles[].events[].frame",
         [](File& in, const JsonValue& value) {
             in.profiles.back().changes.back().frame = static_cast<std::uint32_t>(value.whole(no_index, no_index));
         }},
        {"profiles[].events[].at", set<&Change::at>},
        {"profiles[].flamewire.event", set<&Profile::own_event>},
        {"profiles[].flamewire.unit", set<&Profile::own_unit>},
        {"profiles[].flamewire.pid", set<&Profile::pid>},
        {"profiles[].flamewire.tid", set<&Profile::tid>},
        {"profiles[].flamewire.comm", set<&Profile::own_comm>},
        {"profiles[].flamewire.samples[]", set<&Profile::samples>},
        {"profiles[].flamewire.times_ms[]", set<&Profile::times_ms>},
        {"profiles[].flamewire.first_ms", set<&Profile::first_ms>},
        {"profiles[].flamewire.lines[]", set<&Profile::lines>},
    };
    return all;
}

// Nanoseconds per unit of time. 0: not a unit of time.
double scale_of(std::string_view unit) {
    if (unit == "nanoseconds") return 1;
    if (unit == "microseconds") return 1e3;
    if (unit == "milliseconds") return 1e6;
    if (unit == "seconds") return 1e9;
    return 0;
}

class Rows {
public:
    Rows(RecordingBuilder& builder, const File& read) : builder_(builder), frames_(read.frames), lines_(read.lines) {
        first_ms_ = std::numeric_limits<double>::max();
        for (const Profile& one : read.profiles) first_ms_ = std::min(first_ms_, one.first_ms);
        first_start_ = read.profiles.front().start;
        for (const Profile& one : read.profiles) first_start_ = std::min(first_start_, one.start);
    }

    Result<bool> add(const Profile& one, std::uint32_t number) {
        scale_ = scale_of(one.unit);
        const bool own = !one.own_event.empty();
        const std::string_view unit = scale_ > 0 ? "ns" : one.unit == "bytes" ? "bytes" : "samples";
        row_.event =
            own ? builder_.event(one.own_event, one.own_unit) : builder_.event(scale_ > 0 ? "time" : unit, unit);
        row_.thread = own ? builder_.thread(one.pid, one.tid, one.own_comm) : builder_.thread(0, number, one.name);
        row_.count = 1;
        offset_ns_ = scale_ > 0 ? (one.start - first_start_) * scale_ : 0;
        return one.type == "evented" ? evented(one) : sampled(one, own);
    }

    std::uint64_t unknown = 0;

private:
    // `line`: 0 if only the function is known.
    wire::Id location(std::uint32_t number, std::uint32_t line) {
        const auto [known, added] = locations_.try_emplace({number, line}, 0);
        if (!added) return known->second;
        const Frame& frame = frames_[number];
        FrameKind kind = FrameKind::user;
        for (const FrameKind one : {FrameKind::kernel, FrameKind::jit, FrameKind::inlined, FrameKind::unknown})
            if (frame.kind == kind_name(one)) kind = one;
        return known->second = location_of(builder_, {frame.name, frame.module, kind, frame.file, line, frame.path,
                                                      frame.build_id, frame.returns});
    }

    wire::Id push(wire::Id parent, std::uint32_t frame, std::uint32_t line) {
        if (frame < frames_.size()) return builder_.stack(parent, location(frame, line));
        ++unknown;
        return parent;
    }

    [[nodiscard]] std::uint32_t line_of(std::uint32_t frame) const {
        return frame < frames_.size() ? frames_[frame].line : 0;
    }

    void weigh(double weight) {
        const double scaled = std::clamp(scale_ > 0 ? weight * scale_ : weight, 0.0, 9e18);
        row_.weight = std::isfinite(scaled) ? static_cast<std::uint64_t>(std::llround(scaled)) : 0;
    }

    Result<bool> sampled(const Profile& one, bool own) {
        for (std::size_t i = 0; i < one.stacks.ends.size(); ++i) {
            row_.stack = 0;
            const auto stack = one.stacks[i];
            const auto lines = i < one.lines.size() ? lines_[one.lines[i]] : std::span<const std::uint32_t>{};
            for (std::size_t at = 0; at < stack.size(); ++at)
                row_.stack = push(row_.stack, stack[at], at < lines.size() ? lines[at] : line_of(stack[at]));
            const double weight = i < one.weights.size() ? one.weights[i] : 1;
            weigh(weight);
            if (own)
                row_.count = narrow_count(i < one.samples.size() ? one.samples[i] : 1);
            else if (scale_ <= 0 && one.unit != "bytes")
                row_.count = narrow_count(weight);
            const double at_ns =
                own && i < one.times_ms.size() ? (one.first_ms - first_ms_ + one.times_ms[i]) * 1e6 : offset_ns_;
            row_.bucket = bucket_of(clamped_ns(at_ns));
            offset_ns_ += static_cast<double>(scale_ > 0 ? row_.weight : 0);
            if (row_.weight != 0 || own) TRY(builder_.add(row_));
        }
        return true;
    }

    // Between two changes, the stack consists of the open frames.
    Result<bool> evented(const Profile& one) {
        std::vector<std::pair<std::uint32_t, wire::Id>> open;
        double last = one.start;
        for (const Change& change : one.changes) {
            if (change.at < last)
                return fail(ErrorCode::invalid,
                            fmt::format("the events of the profile {:.100} are not in the order of time", one.name));
            weigh(change.at - last);
            if (row_.weight != 0 && !open.empty()) {
                row_.stack = open.back().second;
                if (scale_ <= 0) row_.count = narrow_count(change.at - last);
                row_.bucket = bucket_of(clamped_ns((last - first_start_) * scale_));
                TRY(builder_.add(row_));
            }
            last = change.at;
            if (change.opens) {
                open.emplace_back(change.frame,
                                  push(open.empty() ? 0 : open.back().second, change.frame, line_of(change.frame)));
            } else {
                if (open.empty() || open.back().first != change.frame)
                    return fail(
                        ErrorCode::invalid,
                        fmt::format("the profile {:.100} closes a frame that is not the innermost one", one.name));
                open.pop_back();
            }
        }
        return true;
    }

    RecordingBuilder& builder_;
    const std::vector<Frame>& frames_;
    const Lists& lines_;
    std::map<std::pair<std::uint32_t, std::uint32_t>, wire::Id> locations_;  // by frame and line
    wire::Row row_;
    double scale_ = 0, offset_ns_ = 0, first_ms_ = 0, first_start_ = 0;
};

}  // namespace

bool recognises_speedscope(std::string_view beginning) {
    return begins_as_json(beginning, '{', {"\"$schema\"", "speedscope.app/file-format-schema.json"}) ||
           begins_as_json(beginning, '{', {"\"shared\"", "\"frames\"", "\"profiles\""});
}

Result<bool> import_speedscope(ImportJob& job) {
    File read;
    const JsonEnd end = TRY(JsonFields(fields(), read).read(job));
    if (end == JsonEnd::cut)
        return fail(ErrorCode::invalid, "the speedscope profile ends too early: fetch or export it again");
    if (end == JsonEnd::stopped || read.profiles.empty())
        return fail(ErrorCode::invalid, "the speedscope profile has no profiles in it, or not in its format");
    wire::Recording about;
    about.target = read.title;
    about.start_ns = import_moment_ns;
    RecordingBuilder& builder = job.begin(std::move(about), 0);
    Rows rows(builder, read);
    std::uint32_t number = 0;
    for (const Profile& one : read.profiles) TRY(rows.add(one, ++number));
    if (rows.unknown != 0)
        builder.note("import-frames",
                     fmt::format("{} frames of stacks are not in the file's list and were left out.", rows.unknown));
    return true;
}

}  // namespace flamewire::profile
