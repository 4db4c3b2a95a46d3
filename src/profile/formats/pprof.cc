#include "profile/formats/pprof.h"

#include <fmt/format.h>
#include <protozero/pbf_writer.hpp>

#include <algorithm>
#include <limits>
#include <map>
#include <unordered_map>
#include <vector>

#include "base/cgroup_path.h"
#include "profile/formats/gzip.h"
#include "profile/query/accumulate.h"

namespace flamewire::profile {
namespace {

using protozero::pbf_writer;

// Field numbers of profile.proto.
enum Profile : protozero::pbf_tag_type {
    profile_sample_type = 1,
    profile_sample = 2,
    profile_mapping = 3,
    profile_location = 4,
    profile_function = 5,
    profile_string_table = 6,
    profile_time_nanos = 9,
    profile_duration_nanos = 10,
    profile_period_type = 11,
    profile_period = 12,
    profile_comment = 13,
    profile_default_sample_type = 14,
};

std::string hexadecimal(std::string_view bytes) {
    std::string out;
    for (const char byte : bytes) fmt::format_to(std::back_inserter(out), "{:02x}", static_cast<unsigned char>(byte));
    return out;
}

std::int64_t signed_value(std::uint64_t value) {
    return static_cast<std::int64_t>(std::min<std::uint64_t>(value, std::numeric_limits<std::int64_t>::max()));
}

// Returns whether the reason counts samples that are not shown.
bool is_lost(wire::LossReason reason) {
    return reason == wire::LossReason::ring_full || reason == wire::LossReason::spool_full ||
           reason == wire::LossReason::queue_full || reason == wire::LossReason::unknown ||
           reason == wire::LossReason::unknown_process;
}

bool is_own_label(std::string_view key) {
    static constexpr std::string_view own[] = {"pid",          "tid",     "thread",     "process",
                                               "container_id", "pod_uid", "cgroup_path"};
    return std::ranges::find(own, key) != std::end(own);
}

class Exporter {
public:
    Exporter(const Store& store, const Filter& filter) : tables_(store.tables()), filter_(filter), out_(bytes_) {
        (void)text("");
    }

    Result<std::string> write(const Store& store, const PprofOptions& options) {
        for (EventId event = 1; event < tables_.events.size(); ++event)
            if ((!filter_.event || *filter_.event == event) && tables_.event_totals[event].samples != 0)
                events_.push_back(event);
        for (const EventId event : events_) add_types(event);
        (void)mapping(main_module());
        for (const auto& [key, value] : options.tags)
            tags_.emplace_back(text(is_own_label(key) ? "tag:" + key : key), text(value));
        for (std::size_t index = 0; index < events_.size(); ++index)
            if (!add_samples(index, options.max_bytes))
                return export_too_large("a profile for pprof", options.max_bytes);
        for (const LossTotal& loss : store.losses())
            if (is_lost(loss.reason) && loss.count != 0)
                out_.add_int64(profile_comment,
                               text(fmt::format("{} samples of {} were lost", loss.count,
                                                loss.event == 0 ? "the recording" : tables_.events[loss.event].name)));
        if (store.recording() && !store.recording()->target.empty())
            out_.add_int64(profile_comment, text("target: " + store.recording()->target));
        if (options.started_ns > 0) out_.add_int64(profile_time_nanos, options.started_ns);
        out_.add_int64(profile_duration_nanos, signed_value(store.end_ns() - store.first_ns()));
        for (const std::string_view string : strings_in_order_)
            out_.add_string(profile_string_table, string.data(), string.size());
        return std::move(bytes_);
    }

private:
    std::int64_t text(std::string_view string) {
        const auto [entry, added] = strings_.try_emplace(std::string(string), strings_.size());
        if (added) strings_in_order_.push_back(entry->first);
        return static_cast<std::int64_t>(entry->second);
    }

    void add_type(protozero::pbf_tag_type tag, std::string_view type, std::string_view unit) {
        pbf_writer writer(out_, tag);
        writer.add_int64(1, text(type));
        writer.add_int64(2, text(unit == "ns" ? pprof_nanoseconds : unit));
    }

    void add_types(EventId event) {
        const Event& about = tables_.events[event];
        add_type(profile_sample_type, events_.size() == 1 ? "samples" : about.name + "_samples", "count");
        add_type(profile_sample_type, about.name, about.unit);
        if (event != events_.front()) return;
        out_.add_int64(profile_default_sample_type, text(about.name));
        if (about.period == 0) return;
        add_type(profile_period_type, about.name, about.unit);
        out_.add_int64(profile_period, signed_value(about.period));
    }

    // pprof treats the first mapping as the program: use the executable of the processes with the most samples, if it
    // is known.
    [[nodiscard]] ModuleId main_module() const {
        std::unordered_map<std::string_view, std::uint64_t> samples;  // by executable
        tables_.rows.for_each(select(tables_, filter_).rows, [&](const RowChunk&, const Row& row) {
            samples[tables_.processes[tables_.threads[row.lane.thread].process].exe] += row.count;
        });
        ModuleId main = 0;
        std::uint64_t most = 0;
        for (ModuleId id = 1; id < tables_.modules.size(); ++id) {
            const symbol::ModuleIdentity& identity = tables_.modules[id].identity;
            if (identity.kind != symbol::ModuleKind::file) continue;
            const auto found = samples.find(identity.path);
            const std::uint64_t own = found == samples.end() ? 0 : found->second;
            if (main == 0 || own > most) {
                main = id;
                most = own;
            }
        }
        return main;
    }

    std::uint64_t mapping(ModuleId module) {
        if (module == 0) return 0;
        if (mappings_.size() < tables_.modules.size()) mappings_.resize(tables_.modules.size());
        if (mappings_[module] != 0) return mappings_[module];
        const Module& about = tables_.modules[module];
        const bool kernel = about.identity.kind == symbol::ModuleKind::kernel;
        pbf_writer writer(out_, profile_mapping);
        writer.add_uint64(1, ++mapping_count_);
        writer.add_uint64(3, std::numeric_limits<std::uint64_t>::max());
        writer.add_int64(5, text(kernel ? "[kernel.kallsyms]" : about.identity.path));
        if (!about.identity.build_id.empty()) writer.add_int64(6, text(hexadecimal(about.identity.build_id)));
        writer.add_bool(7, true);
        writer.add_bool(8, true);
        writer.add_bool(9, true);
        writer.add_bool(10, true);
        return mappings_[module] = mapping_count_;
    }

    std::uint64_t function(FunctionId id, StringId file) {
        const auto [entry, added] = functions_.try_emplace({id, file}, functions_.size() + 1);
        if (!added) return entry->second;
        const Function& about = tables_.functions[id];
        std::string name(tables_.strings[about.name]);
        // Functions of kernel modules are written as in kallsyms.
        const std::string_view module = tables_.strings[about.module];
        if (module.ends_with(".ko")) name += fmt::format(" [{}]", module.substr(0, module.size() - 3));
        pbf_writer writer(out_, profile_function);
        writer.add_uint64(1, entry->second);
        writer.add_int64(2, text(name));
        writer.add_int64(3, text(name));
        writer.add_int64(4, text(tables_.strings[file]));
        writer.add_int64(5, about.line);
        return entry->second;
    }

    // Named frames that were inlined share one location with the frame that they are inlined into. Other frames have
    // locations of their own. `group`: innermost first.
    std::uint64_t location(const std::vector<LocationId>& group) {
        const auto [entry, added] = locations_.try_emplace(group, locations_.size() + 1);
        if (!added) return entry->second;
        group_bytes_ += group.size() * sizeof group[0];
        const Location& about = tables_.locations[group.back()];
        const std::uint64_t in = mapping(about.module);
        std::vector<std::pair<std::uint64_t, std::uint32_t>> lines;
        for (const LocationId id : group)
            for (const LocationFrame& frame : tables_.frames_of(id))
                if (tables_.functions[frame.function].kind != FrameKind::unknown)
                    lines.emplace_back(function(frame.function, frame.file), frame.line);
        pbf_writer writer(out_, profile_location);
        writer.add_uint64(1, entry->second);
        if (in != 0) writer.add_uint64(2, in);
        if (about.address != 0) writer.add_uint64(3, about.code_address().lookup());
        for (const auto& [function, line] : lines) {
            pbf_writer one(writer, 4);
            one.add_uint64(1, function);
            if (line != 0) one.add_int64(2, line);
        }
        return entry->second;
    }

    void stack(StackId stack, std::vector<std::uint64_t>& ids) {
        ids.clear();
        std::vector<LocationId>& group = group_;
        group.clear();
        for (; stack != 0; stack = tables_.stacks.parent(stack)) {
            const LocationId id = tables_.stacks.label(stack);
            group.push_back(id);
            const bool inlined = (tables_.locations[id].flags & wire::location_flag::inlined) != 0;
            if (inlined && tables_.stacks.parent(stack) != 0) continue;
            ids.push_back(location(group));
            group.clear();
        }
    }

    static void add_label(pbf_writer& sample, std::int64_t key, std::int64_t string, std::int64_t number) {
        pbf_writer writer(sample, 3);
        writer.add_int64(1, key);
        if (string != 0) writer.add_int64(2, string);
        if (number != 0) writer.add_int64(3, number);
    }

    using Places = std::vector<std::pair<std::int64_t, std::int64_t>>;  // (key, value) indices into the string table
    const Places& places_of(ProcessId id) {
        const auto [entry, added] = places_.try_emplace(id);
        if (!added || id == 0) return entry->second;
        const Process& process = tables_.processes[id];
        const auto add = [&](std::string_view key, std::string_view value) {
            if (!value.empty()) entry->second.emplace_back(text(key), text(value));
        };
        add("container_id", process.container_id);
        add("pod_uid", parse_cgroup_path(process.cgroup).pod_uid);
        if (process.cgroup != "/") add("cgroup_path", process.cgroup);
        return entry->second;
    }

    // False: the output exceeds `max_bytes`.
    bool add_samples(std::size_t index, std::size_t max_bytes) {
        Filter filter = filter_;
        filter.event = events_[index];
        const Selection selection = select(tables_, filter);
        PairSums sums;
        tables_.rows.for_each(selection.rows, [&](const RowChunk&, const Row& row) {
            sums.add(row.lane.thread, row.stack, {row.count, row.weight});
        });
        std::vector<std::uint64_t> ids;
        std::vector<std::int64_t> values(2 * events_.size());
        for (const PairSums::Entry& entry : sums.entries()) {
            stack(entry.second, ids);  // writes its own messages before the sample's message
            values[2 * index] = signed_value(entry.sum.samples);
            values[2 * index + 1] = signed_value(entry.sum.weight);
            const Thread& thread = tables_.threads[entry.first];
            const std::int64_t comm = text(thread.comm);
            const std::int64_t process = thread.process == 0 ? 0 : text(tables_.processes[thread.process].comm);
            const Places& places = places_of(thread.process);
            const std::int64_t thread_key = text("thread"), tid_key = text("tid"), pid_key = text("pid"),
                               process_key = text("process");
            pbf_writer writer(out_, profile_sample);
            writer.add_packed_uint64(1, ids.begin(), ids.end());
            writer.add_packed_int64(2, values.begin(), values.end());
            if (thread.pid != 0) add_label(writer, pid_key, 0, thread.pid);
            if (thread.tid != 0) add_label(writer, tid_key, 0, thread.tid);
            if (comm != 0) add_label(writer, thread_key, comm, 0);
            if (process != 0) add_label(writer, process_key, process, 0);
            for (const auto& [key, value] : places) add_label(writer, key, value, 0);
            for (const auto& [key, value] : tags_) add_label(writer, key, value, 0);
            if (bytes_.size() + group_bytes_ > max_bytes) return false;
        }
        return true;
    }

    const Store::Tables& tables_;
    const Filter& filter_;
    std::string bytes_;
    pbf_writer out_;
    std::vector<EventId> events_;
    std::vector<std::pair<std::int64_t, std::int64_t>> tags_;  // (key, value) indices into the string table
    std::map<std::string, std::size_t> strings_;
    std::vector<std::string_view> strings_in_order_;
    std::vector<std::uint64_t> mappings_;  // by module
    std::uint64_t mapping_count_ = 0;
    std::map<std::pair<FunctionId, StringId>, std::uint64_t> functions_;
    std::map<std::vector<LocationId>, std::uint64_t> locations_;
    std::size_t group_bytes_ = 0;  // size of the keys of locations_
    std::vector<LocationId> group_;
    std::unordered_map<ProcessId, Places> places_;
};

}  // namespace

Result<std::string> pprof(const Store& store, const Filter& filter, const PprofOptions& options) {
    return gzipped(TRY(Exporter(store, filter).write(store, options)));
}

}  // namespace flamewire::profile
