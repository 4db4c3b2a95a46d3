#include "profile/formats/chrome_import.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "profile/formats/chrome_events.h"
#include "profile/formats/chrome_spans.h"
#include "profile/formats/timed_frames.h"

namespace flamewire::profile {
namespace {

using chrome::Content;
using chrome::CpuProfile;
using chrome::Samples;
using chrome::Span;
using chrome::ThreadKey;

// Converts start and end to microseconds and computes the time of each sample.
void to_times(CpuProfile& profile) {
    Samples& samples = profile.samples;
    if (std::exchange(profile.in_seconds, false)) {
        samples.start_us *= 1e6;
        samples.end_us *= 1e6;
    }
    if (samples.nodes.empty()) return;
    if (!samples.times_us.empty()) {
        samples.times_us.resize(samples.nodes.size(), samples.times_us.back());
        samples.start_us = samples.times_us.front();
        return;
    }
    double now = samples.start_us;
    const double usual = std::max(samples.end_us - now, 0.0) / static_cast<double>(samples.nodes.size());
    for (std::size_t i = 0; i < samples.nodes.size(); ++i) {
        if (i < samples.deltas_us.size()) now += std::max(samples.deltas_us[i], 0.0);
        samples.times_us.push_back(now);
        if (samples.deltas_us.empty()) now += usual;
    }
}

std::uint64_t hits_of(const chrome::CallTree& tree) {
    std::uint64_t hits = 0;
    for (const chrome::Node& node : tree.nodes) hits += node.hits;
    return hits;
}

// Returns whether the profile covers any time.
bool takes_time(const CpuProfile& profile) {
    return !profile.samples.nodes.empty() ||
           (profile.samples.end_us > profile.samples.start_us && hits_of(profile.tree) != 0);
}

// "name(url:line:column)", as Hermes writes it. Members are views into `text`. Without a place, name is the whole text.
struct Place {
    std::string_view name, url;
    std::uint32_t line = 0;
};
Place place_of(std::string_view text) {
    const Place whole{.name = text, .url = {}};
    const std::size_t open = text.rfind('(');
    if (!text.ends_with(')') || open == std::string_view::npos) return whole;
    Place place{.name = text.substr(0, open), .url = text.substr(open + 1, text.size() - open - 2)};
    for (int i = 0; i < 2; ++i) {  // column, then line
        const std::size_t colon = place.url.rfind(':');
        if (colon == std::string_view::npos) return whole;
        const std::string_view digits = place.url.substr(colon + 1);
        const auto [stop, error] = std::from_chars(digits.data(), digits.data() + digits.size(), place.line);
        if (error != std::errc() || stop != digits.data() + digits.size()) return whole;
        place.url = place.url.substr(0, colon);
    }
    return place.url.empty() ? whole : place;
}

// Assigns numbers to ids that are not numeric. Numeric ids stay unchanged.
class IdNumbers {
public:
    explicit IdNumbers(const Content& content) : texts_(content.texts) {
        for (const auto& [thread, spans] : content.spans) see(thread);
        for (const auto& [thread, samples] : content.samples) see(thread);
        for (const auto& [id, profile] : content.profiles) see(profile.samples.thread);
        std::uint32_t next = 1;
        for (const StringId text : others_) {
            while (used_.contains(next)) ++next;
            numbers_.emplace(text, next++);
        }
    }
    [[nodiscard]] std::uint32_t of(StringId text) const {
        const auto found = numbers_.find(text);
        return found == numbers_.end() ? 0 : found->second;
    }
    [[nodiscard]] bool is_number(StringId text) const { return text == 0 || !others_.contains(text); }
    [[nodiscard]] std::size_t others() const { return others_.size(); }

private:
    void see(ThreadKey thread) {
        for (const StringId text : {thread.first, thread.second}) {
            if (text == 0) continue;
            const std::string_view digits = texts_[text];
            std::uint32_t number = 0;
            const auto [stop, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
            if (error != std::errc() || stop != digits.data() + digits.size()) {
                others_.insert(text);
            } else {
                used_.insert(number);
                numbers_.emplace(text, number);
            }
        }
    }
    const StringTable& texts_;
    std::set<StringId> others_;
    std::set<std::uint32_t> used_;
    std::map<StringId, std::uint32_t> numbers_;
};

// The stacks of one call tree.
class Stacks {
public:
    Stacks(RecordingBuilder& builder, const StringTable& texts, const chrome::CallTree& tree)
        : builder_(builder), texts_(texts), tree_(tree) {
        for (std::size_t i = 0; i < tree.nodes.size(); ++i) index_.emplace(tree.nodes[i].id, i);
        for (const auto& [child, parent] : tree.children) parents_.emplace(child, parent);
    }
    // Walks up to a node with a known stack, then creates the stacks of all nodes on the way down.
    wire::Id of(std::uint64_t id) {
        std::vector<std::size_t> path;
        wire::Id stack = 0;
        for (auto node = index_.find(id); node != index_.end();) {
            if (const auto found = known_.find(node->first); found != known_.end()) {
                stack = found->second;
                break;
            }
            if (path.size() == tree_.nodes.size()) {
                has_ring_ = true;
                break;
            }
            path.push_back(node->second);
            const auto parent = parents_.find(node->first);
            const std::uint64_t next = parent != parents_.end() ? parent->second : tree_.nodes[node->second].parent;
            if (next == node->first) break;
            node = index_.find(next);
        }
        for (auto step = path.rbegin(); step != path.rend(); ++step) {
            const chrome::Node& node = tree_.nodes[*step];
            if (texts_[node.name] != "(root)") stack = builder_.stack(stack, location(node));
            known_.emplace(node.id, stack);
        }
        return stack;
    }
    [[nodiscard]] bool has_ring() const { return has_ring_; }

private:
    wire::Id location(const chrome::Node& node) {
        Place place{.name = texts_[node.name], .url = texts_[node.url], .line = node.line};
        if (place.url.empty()) place = place_of(place.name);
        return builder_.location(
            {.function = place.name.empty() ? "(anonymous)" : place.name, .file = place.url, .line = place.line});
    }

    RecordingBuilder& builder_;
    const StringTable& texts_;
    const chrome::CallTree& tree_;
    std::unordered_map<std::uint64_t, std::size_t> index_;
    std::unordered_map<std::uint64_t, std::uint64_t> parents_;
    std::unordered_map<std::uint64_t, wire::Id> known_;
    bool has_ring_ = false;
};

class Rows {
public:
    // Spans and samples are separate events: their sum would count the same time twice.
    Rows(RecordingBuilder& builder, const Content& content, bool sampled)
        : builder_(builder), content_(content), numbers_(content) {
        std::optional<double> first;
        const auto see = [&](double time_us) { first = std::min(first.value_or(time_us), time_us); };
        for (const auto& [thread, spans] : content.spans)
            for (const Span& span : spans) see(span.start_us);
        for (const auto& [thread, samples] : content.samples)
            for (const double time : samples.times_us) see(time);
        for (const auto& [id, profile] : content.profiles)
            if (takes_time(profile)) see(profile.samples.start_us);
        first_us_ = first.value_or(0);
        if (sampled) samples_event_ = builder.event(content.spans.empty() ? "time" : "cpu-profile", "ns");
        if (!content.spans.empty()) spans_event_ = builder.event("time", "ns");
        row_.count = 1;
        if (numbers_.others() != 0)
            builder.note("import-ids",
                         fmt::format("Process or thread ids that are not numbers were replaced by free numbers: {}.",
                                     numbers_.others()));
    }

    Result<bool> add(ThreadKey thread, std::vector<Span> spans) {
        row_.thread = thread_of(thread);
        row_.event = spans_event_;
        const std::vector<chrome::Interval> intervals = chrome::intervals_of(std::move(spans), unmatched);
        std::vector<Open> open;
        double now = 0;
        // Emits the innermost span until `until`.
        const auto pass = [&](double until) -> Result<bool> {
            if (!open.empty()) TRY(emit(open.back().stack, now, until - now));
            now = std::max(now, until);
            return true;
        };
        for (const chrome::Interval& one : intervals) {
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

    // Each sample lasts until the next one. The last one is as long as the one before it.
    Result<bool> add(const Samples& samples, Stacks& stacks) {
        row_.thread = thread_of(samples.thread);
        row_.event = samples_event_;
        const std::vector<double>& times = samples.times_us;
        for (std::size_t i = 0; i < samples.nodes.size(); ++i) {
            double length = 0;
            if (i + 1 < times.size())
                length = times[i + 1] - times[i];
            else if (i > 0)
                length = times[i] - times[i - 1];
            else
                length = std::max(times[i] - samples.start_us, samples.end_us - times[i]);
            TRY(emit(stacks.of(samples.nodes[i]), times[i], length));
        }
        has_rings = has_rings || stacks.has_ring();
        return true;
    }

    Result<bool> add(const CpuProfile& profile) {
        Stacks stacks(builder_, content_.texts, profile.tree);
        const Samples& samples = profile.samples;
        if (!samples.nodes.empty()) return add(samples, stacks);
        if (!takes_time(profile)) return true;
        // Without samples, the time is split between the nodes by their hits.
        row_.thread = thread_of(samples.thread);
        row_.event = samples_event_;
        const double each = (samples.end_us - samples.start_us) / static_cast<double>(hits_of(profile.tree));
        for (const chrome::Node& node : profile.tree.nodes)
            TRY(emit(stacks.of(node.id), samples.start_us, each * node.hits));
        has_rings = has_rings || stacks.has_ring();
        return true;
    }

    std::uint64_t unmatched = 0;
    bool has_rings = false;

private:
    struct Open {
        double end = 0;
        wire::Id stack = 0;
    };

    wire::Id thread_of(ThreadKey key) {
        const auto name = content_.thread_names.find(key);
        const auto process = content_.process_names.find(key.first);
        std::string_view comm = name != content_.thread_names.end() ? content_.texts[name->second] : std::string_view{};
        if (comm.empty() && process != content_.process_names.end()) comm = content_.texts[process->second];
        if (comm.empty() && !numbers_.is_number(key.second)) comm = content_.texts[key.second];
        return builder_.thread(numbers_.of(key.first), numbers_.of(key.second), comm);
    }

    Result<bool> emit(wire::Id stack, double at_us, double length_us) {
        row_.weight = clamped_ns(length_us * 1e3);
        if (row_.weight == 0) return true;
        row_.stack = stack;
        row_.bucket = bucket_of(clamped_ns((at_us - first_us_) * 1e3));
        return builder_.add(row_);
    }

    RecordingBuilder& builder_;
    const Content& content_;
    IdNumbers numbers_;
    wire::Row row_;
    wire::Id samples_event_ = 0, spans_event_ = 0;
    double first_us_ = 0;
};

}  // namespace

bool recognises_chrome(std::string_view beginning) {
    return begins_as_json(beginning, '{', {"\"traceEvents\""}) ||
           begins_as_json(beginning, '{', {"\"nodes\"", "\"callFrame\""}) ||
           begins_as_json(beginning, '{', {"\"head\"", "\"functionName\""}) ||
           begins_as_json(beginning, '[', {"\"ph\"", "\"ts\""});
}

Result<bool> import_chrome(ImportJob& job) {
    Content content;
    const JsonEnd end = TRY(chrome::read(job, content));
    for (auto& [id, profile] : content.profiles) to_times(profile);
    const bool sampled = !content.samples.empty() ||
                         std::ranges::any_of(content.profiles, [](const auto& one) { return takes_time(one.second); });
    if (content.spans.empty() && !sampled)
        return fail(ErrorCode::invalid,
                    end == JsonEnd::cut
                        ? "the file of Chrome ends before anything that took time: record or copy it again"
                        : "the file of Chrome has no CPU profile and no events that take time in it");
    wire::Recording about;
    about.start_ns = import_moment_ns;
    RecordingBuilder& builder = job.begin(std::move(about), 0);
    Rows rows(builder, content, sampled);
    for (auto& [thread, spans] : content.spans) TRY(rows.add(thread, std::move(spans)));
    for (const auto& [id, profile] : content.profiles) TRY(rows.add(profile));
    Stacks stacks(builder, content.texts, content.stack_frames);
    for (const auto& [thread, samples] : content.samples) TRY(rows.add(samples, stacks));
    if (end == JsonEnd::cut)
        builder.note("import-truncated",
                     "The file ends in the middle of its list, as a trace may: the part before is shown.");
    if (rows.unmatched != 0)
        builder.note("import-unmatched",
                     fmt::format("{} events have a beginning without an end, or the other way round.", rows.unmatched));
    if (content.other_events != 0)
        builder.note("import-events", fmt::format("{} events take no time and were left out.", content.other_events));
    if (rows.has_rings)
        builder.note("import-rings", "Some functions of the CPU profile are their own callers: the file is damaged.");
    return true;
}

}  // namespace flamewire::profile
