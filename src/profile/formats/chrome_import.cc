#include "profile/formats/chrome_import.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <tuple>
#include <unordered_map>

#include "profile/formats/chrome_events.h"
#include "profile/formats/timed_frames.h"

namespace flamewire::profile {
namespace {

using chrome::Content;
using chrome::CpuProfile;
using chrome::Span;
using chrome::ThreadKey;

class Rows {
public:
    Rows(RecordingBuilder& builder, const Content& content) : builder_(builder), content_(content) {
        std::optional<double> first;
        const auto see = [&](double time_us) { first = std::min(first.value_or(time_us), time_us); };
        for (const auto& [thread, spans] : content.spans)
            for (const Span& span : spans) see(span.start_us);
        for (const auto& [id, profile] : content.profiles)
            if (!profile.samples.empty()) see(profile.start_us);
        first_us_ = first.value_or(0);
        row_.event = builder.event("time", "ns");
        row_.count = 1;
    }

    Result<bool> add(ThreadKey thread, std::vector<Span> spans) {
        row_.thread = thread_of(thread);
        const std::vector<Interval> intervals = matched(std::move(spans));
        std::vector<Open> open;
        double now = 0;
        // What is innermost until `until`.
        const auto pass = [&](double until) -> Result<bool> {
            if (!open.empty()) TRY(emit(open.back().stack, now, until - now));
            now = std::max(now, until);
            return true;
        };
        for (const Interval& one : intervals) {
            while (!open.empty() && open.back().end <= one.start) {
                TRY(pass(open.back().end));
                open.pop_back();
            }
            TRY(pass(one.start));
            const wire::Id parent = open.empty() ? 0 : open.back().stack;
            const double end = open.empty() ? one.end : std::min(one.end, open.back().end);
            const std::string_view name = content_.texts[one.name];
            open.push_back(
                {end, builder_.stack(parent, builder_.location({.function = name.empty() ? "(unnamed)" : name}))});
        }
        while (!open.empty()) {
            TRY(pass(open.back().end));
            open.pop_back();
        }
        return true;
    }

    Result<bool> add(const CpuProfile& profile) {
        row_.thread = thread_of(profile.thread);
        std::unordered_map<std::uint64_t, std::size_t> index;
        for (std::size_t i = 0; i < profile.nodes.size(); ++i) index.emplace(profile.nodes[i].id, i);
        std::unordered_map<std::uint64_t, std::uint64_t> parents;
        for (const auto& [child, parent] : profile.children) parents.emplace(child, parent);
        std::unordered_map<std::uint64_t, wire::Id> stacks;
        const auto delta = [&](std::size_t i) {
            return i < profile.deltas_us.size() ? std::max(profile.deltas_us[i], 0.0) : 0.0;
        };
        double now = profile.start_us;
        for (std::size_t i = 0; i < profile.samples.size(); ++i) {
            now += delta(i);
            const std::uint64_t node = profile.samples[i];
            const wire::Id stack = stack_of(profile, index, parents, node, stacks);
            // Until the next sample; the last one as long as the one before it.
            TRY(emit(stack, now, i + 1 < profile.samples.size() ? delta(i + 1) : delta(i)));
        }
        return true;
    }

    std::uint64_t unmatched = 0, rings = 0;

private:
    struct Interval {
        double start = 0, end = 0;
        StringId name = 0;
        std::size_t order = 0;  // of their beginnings
    };
    struct Open {
        double end = 0;
        wire::Id stack = 0;
    };

    wire::Id thread_of(ThreadKey key) {
        const auto name = content_.thread_names.find(key);
        const auto process = content_.process_names.find(key.first);
        std::string_view comm = name != content_.thread_names.end() ? content_.texts[name->second] : std::string_view{};
        if (comm.empty() && process != content_.process_names.end()) comm = content_.texts[process->second];
        return builder_.thread(key.first, key.second, comm);
    }

    Result<bool> emit(wire::Id stack, double at_us, double length_us) {
        row_.weight = clamped_ns(length_us * 1e3);
        if (row_.weight == 0) return true;
        row_.stack = stack;
        row_.bucket = bucket_of(clamped_ns((at_us - first_us_) * 1e3));
        return builder_.add(row_);
    }

    // Begins with their ends, outer ones before those in them.
    std::vector<Interval> matched(std::vector<Span> spans) {
        std::ranges::sort(spans, {}, [](const Span& span) { return std::pair(span.start_us, span.order); });
        std::vector<Interval> intervals;
        std::vector<std::size_t> open;
        double last = 0;
        for (const Span& span : spans) {
            const double length = span.length_us > 0 ? span.length_us : 0;
            last = std::max(last, span.start_us + length);
            if (span.phase == 'X') {
                intervals.push_back({span.start_us, span.start_us + length, span.name, intervals.size()});
            } else if (span.phase == 'B') {
                open.push_back(intervals.size());
                intervals.push_back({span.start_us, span.start_us, span.name, intervals.size()});
            } else {
                // An end without a name is that of the innermost one.
                const auto begun = std::find_if(open.rbegin(), open.rend(), [&](std::size_t i) {
                    return span.name == 0 || intervals[i].name == span.name;
                });
                if (begun == open.rend()) {
                    ++unmatched;
                    continue;
                }
                intervals[*begun].end = span.start_us;
                open.erase(std::next(begun).base());
            }
        }
        for (const std::size_t i : open) intervals[i].end = last;
        unmatched += open.size();
        std::ranges::sort(intervals, {},
                          [](const Interval& one) { return std::tuple(one.start, -one.end, one.order); });
        return intervals;
    }

    // Up to a node whose stack is known, which all on the way have then.
    wire::Id stack_of(const CpuProfile& profile, const std::unordered_map<std::uint64_t, std::size_t>& index,
                      const std::unordered_map<std::uint64_t, std::uint64_t>& parents, std::uint64_t id,
                      std::unordered_map<std::uint64_t, wire::Id>& known) {
        std::vector<std::size_t> path;
        wire::Id stack = 0;
        for (auto node = index.find(id); node != index.end();) {
            if (const auto found = known.find(node->first); found != known.end()) {
                stack = found->second;
                break;
            }
            if (path.size() == profile.nodes.size()) {
                ++rings;
                break;
            }
            path.push_back(node->second);
            const auto parent = parents.find(node->first);
            const std::uint64_t next = parent != parents.end() ? parent->second : profile.nodes[node->second].parent;
            if (next == node->first) break;
            node = index.find(next);
        }
        for (auto step = path.rbegin(); step != path.rend(); ++step) {
            const chrome::Node& node = profile.nodes[*step];
            const std::string_view name = content_.texts[node.name];
            if (name != "(root)")
                stack = builder_.stack(stack, builder_.location({.function = name.empty() ? "(anonymous)" : name,
                                                                 .file = content_.texts[node.url],
                                                                 .line = node.line}));
            known.emplace(node.id, stack);
        }
        return stack;
    }

    RecordingBuilder& builder_;
    const Content& content_;
    wire::Row row_;
    double first_us_ = 0;
};

}  // namespace

bool recognises_chrome(std::string_view beginning) {
    return begins_as_json(beginning, '{', {"\"traceEvents\""}) ||
           begins_as_json(beginning, '{', {"\"nodes\"", "\"callFrame\""}) ||
           begins_as_json(beginning, '[', {"\"ph\"", "\"ts\""});
}

Result<bool> import_chrome(ImportJob& job) {
    Content content;
    const JsonEnd end = TRY(chrome::read(job, content));
    const bool profiled =
        std::ranges::any_of(content.profiles, [](const auto& one) { return !one.second.samples.empty(); });
    if (content.spans.empty() && !profiled)
        return fail(ErrorCode::invalid,
                    end == JsonEnd::cut
                        ? "the file of Chrome ends before anything that took time: record or copy it again"
                        : "the file of Chrome has no CPU profile and no events that take time in it");
    wire::Recording about;
    about.start_ns = import_moment_ns;
    RecordingBuilder& builder = job.begin(std::move(about), 0);
    Rows rows(builder, content);
    for (auto& [thread, spans] : content.spans) TRY(rows.add(thread, std::move(spans)));
    for (const auto& [id, profile] : content.profiles) TRY(rows.add(profile));
    if (end == JsonEnd::cut)
        builder.note("import-truncated",
                     "The file ends in the midst of its list, as a trace may: what stands before is shown.");
    if (rows.unmatched != 0)
        builder.note("import-unmatched",
                     fmt::format("{} events have a beginning without an end, or the other way round.", rows.unmatched));
    if (content.other_events != 0)
        builder.note("import-events", fmt::format("{} events take no time and were left out.", content.other_events));
    if (rows.rings != 0)
        builder.note("import-rings", "Some functions of the CPU profile are their own callers: the file is damaged.");
    return true;
}

}  // namespace flamewire::profile
