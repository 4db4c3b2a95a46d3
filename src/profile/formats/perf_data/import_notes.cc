#include "profile/formats/perf_data/import_notes.h"

#include <fmt/format.h>

#include <array>
#include <string>
#include <string_view>

#include "perf/abi.h"
#include "profile/formats/perf_data/layout.h"

namespace flamewire::profile::perf_data {
namespace {

struct Unshown {
    std::uint32_t type;
    std::string_view what;
};

// Records that a user may look for. Others (CPU maps, ends of rounds, …) only matter to perf.
constexpr std::array unshown{
    Unshown{perf::record::read, "counts of events at the end of threads"},
    Unshown{perf::record::aux, "AUX trace data (Intel PT, Arm SPE, CoreSight)"},
    Unshown{tool_record::auxtrace_info, "AUX trace data (Intel PT, Arm SPE, CoreSight)"},
    Unshown{tool_record::auxtrace_error, "errors of AUX trace data"},
    Unshown{perf::record::context_switch, "context switches"},
    Unshown{perf::record::namespaces, "namespaces"},
    Unshown{perf::record::cgroup, "cgroups"},
    Unshown{perf::record::text_poke, "changes of kernel code"},
    Unshown{tool_record::stat, "counts of perf stat"},
};

std::string parts_not_shown(const Header& header, const RecordReader& reader, const Stacks::Counts& stacks,
                            const ImportCounts& counts) {
    std::string list;
    const auto add = [&](std::string_view what) {
        if (list.find(what) == std::string::npos) list += list.empty() ? std::string(what) : fmt::format(", {}", what);
    };
    std::uint64_t unknown = 0;
    for (const auto& [type, count] : counts.other_types) {
        for (const Unshown& one : unshown)
            if (one.type == type) add(one.what);
        if (type > perf::record::callchain_deferred &&
            (type < tool_record::attribute || type > tool_record::compressed2))
            unknown += count;
    }
    if (reader.trace_bytes() != 0) add("AUX trace data (Intel PT, Arm SPE, CoreSight)");
    if (counts.branch_samples != 0) add(fmt::format("branch records of {} samples", counts.branch_samples));
    if (counts.raw_samples != 0) add(fmt::format("raw data of {} samples", counts.raw_samples));
    if (counts.guest_maps != 0 || stacks.guest != 0) add("names of functions in virtual machines");
    for (const unsigned feature : header.features)
        if (feature == feature::simpleperf_files) add("simpleperf's own table of symbols");
    if (unknown != 0) add(fmt::format("{} records of types that are not known here", unknown));
    return list;
}

void note_damage(RecordingBuilder& builder, const Header& header, const RecordReader& reader,
                 const ImportCounts& counts) {
    if (!reader.damage().empty())
        builder.note("import-damaged",
                     fmt::format("The perf.data file is damaged: {}. The part before was imported.", reader.damage()));
    if (header.unfinished)
        builder.note("import-unfinished",
                     "perf did not finish this file: the names of the machine and of its kernel and the "
                     "build-ids are missing.");
    if (header.damaged_features != 0)
        builder.note("import-features",
                     fmt::format("{} of the file's notes about the machine and the recording are damaged or cut off.",
                                 header.damaged_features));
    const std::uint64_t lost = counts.broken_samples + reader.unknown_events();
    if (lost != 0) {
        builder.note("import-samples",
                     fmt::format("{} samples could not be read: {} are damaged, {} are of an event that the file "
                                 "does not have.",
                                 lost, counts.broken_samples, reader.unknown_events()));
        wire::Loss loss;
        loss.count = lost;
        builder.loss(loss);
    }
    if (counts.unknown_ids != 0)
        builder.note("import-values",
                     fmt::format("{} values of counters in samples are of no event of the file and were left out.",
                                 counts.unknown_ids));
}

std::string some_of(const std::vector<std::string>& paths) {
    constexpr std::size_t shown = 5;
    std::string list;
    for (std::size_t i = 0; i < paths.size() && i < shown; ++i) list += (i == 0 ? "" : ", ") + paths[i];
    if (paths.size() > shown) list += fmt::format(" and {} more", paths.size() - shown);
    return list;
}

}  // namespace

void write_notes(RecordingBuilder& builder, const Header& header, const RecordReader& reader,
                 const Stacks::Counts& stacks, const Modules& modules, const ImportCounts& counts) {
    note_damage(builder, header, reader, counts);
    if (builder.rows() == 0) builder.note("import-no-samples", "The perf.data file has no samples.");
    if (const std::string list = parts_not_shown(header, reader, stacks, counts); !list.empty())
        builder.note("import-not-shown", fmt::format("The perf.data file has what an import leaves out: {}.", list));
    if (counts.kernel_base_missing)
        builder.note("import-kernel-base",
                     "The recording does not state where its kernel was, so kernel functions have no names.",
                     "record again with kernel.kptr_restrict=0 on the target");
    const std::vector<std::string> missing = modules.missing();
    if (!missing.empty())
        builder.note(
            "import-modules",
            fmt::format("{} files of the recording are not on this machine: {}. Their addresses are where they "
                        "most likely are{}.",
                        missing.size(), some_of(missing),
                        stacks.incomplete == 0 ? std::string()
                                               : fmt::format(", and of {} copied stacks {} could not be "
                                                             "unwound to their end",
                                                             stacks.unwound, stacks.incomplete)),
            "give the files with --binary FILE or --sysroot DIR and import again");
    if (stacks.foreign != 0)
        builder.note("import-processor",
                     fmt::format("{} copied stacks are of a processor ({}) whose stacks are not unwound here.",
                                 stacks.foreign, header.machine.arch.empty() ? "unknown" : header.machine.arch));
}

void note_perf_maps(RecordingBuilder& builder, const PerfMaps& maps) {
    std::vector<std::string> used, cut, missing;
    for (const auto& [pid, entry] : maps.entries()) {
        if (entry.map != nullptr) used.push_back(entry.path);
        if (entry.map != nullptr && entry.map->cut()) cut.push_back(entry.path);
        if (entry.missing) missing.push_back(fmt::format("{} ({})", pid, entry.comm));
    }
    if (!used.empty())
        builder.note("import-perf-maps",
                     fmt::format("Code that was generated at run time has the names that {} {} for it.", some_of(used),
                                 used.size() == 1 ? "has" : "have"));
    if (!cut.empty())
        builder.note("import-perf-maps-cut",
                     fmt::format("Only the first {} lines of {} were read.", symbol::PerfMap::max_lines, some_of(cut)));
    if (!missing.empty())
        builder.note("import-no-perf-maps",
                     fmt::format("Code that was generated at run time has no names in processes {}: there is no "
                                 "perf-PID.map of them here.",
                                 some_of(missing)),
                     "give the target's /tmp/perf-PID.map below --sysroot DIR, as DIR/tmp/perf-PID.map, and import "
                     "again");
}

}  // namespace flamewire::profile::perf_data
