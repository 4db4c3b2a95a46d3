#include "agent/perf/tracepoint.h"

#include <fmt/format.h>
#include <linux/perf_event.h>

#include <algorithm>
#include <charconv>

#include "base/wildcard.h"

namespace flamewire::agent {
namespace {

bool is_part_of_name(std::string_view text) {
    return !text.empty() && text.find('/') == std::string_view::npos && !text.starts_with('.');
}

std::unexpected<Error> no_access(std::string_view system, std::string_view event) {
    return fail(ErrorCode::permission,
                fmt::format("tracepoint {}:{}: tracefs may only be read by root here", system, event));
}

std::unexpected<Error> missing(std::string_view system, std::string_view event, bool mounted) {
    if (mounted) return fail(ErrorCode::not_found, fmt::format("this kernel has no tracepoint {}:{}", system, event));
    return fail(ErrorCode::not_found,
                fmt::format("tracepoint {}:{} needs tracefs, which is not mounted. Try: mount -t tracefs tracefs "
                            "/sys/kernel/tracing",
                            system, event));
}

std::string names_of(const std::vector<perf::TracepointField>& fields) {
    std::string names;
    for (const perf::TracepointField& field : fields) names += (names.empty() ? "" : ", ") + field.name;
    return names;
}

}  // namespace

Result<bool> find_tracepoint(EventSpec& spec, std::string_view system, std::string_view event, const Sysfs& sysfs) {
    if (!is_part_of_name(system) || !is_part_of_name(event))
        return fail(ErrorCode::invalid, fmt::format("'{}' is not a tracepoint", spec.name));
    bool mounted = false;
    for (const std::string& folder : tracefs_folders(sysfs)) {
        const std::string place = fmt::format("{}/events/{}/{}/", folder, system, event);
        const auto text = sysfs.read(place + "id");
        if (!text && text.error().code == ErrorCode::permission) return no_access(system, event);
        mounted = mounted || sysfs.list(folder + "/events").has_value();
        if (!text) continue;
        std::uint32_t id = 0;
        const auto parsed = std::from_chars(text->data(), text->data() + text->size(), id);
        if (parsed.ec != std::errc{}) continue;
        spec.unit = "events";
        spec.parts.push_back({{}, PERF_TYPE_TRACEPOINT, id, 0, 0, {}});
        if (const auto format = sysfs.read(place + "format")) {
            const std::vector<perf::TracepointField> fields = perf::parse_tracepoint_format(*format);
            spec.fields = names_of(fields);
            EventPart& part = spec.parts.back();
            const std::string_view print_format = perf::print_format_of(*format);
            part.values = std::make_shared<const perf::SampleValues>(
                perf::SampleValues{perf::value_fields(fields, print_format), std::string(print_format)});
            const auto pid = std::ranges::find(fields, "pid", &perf::TracepointField::name);
            if (spec.off_cpu != 0 && pid != fields.end()) part.woken_at = pid->offset;
        }
        return true;
    }
    return missing(system, event, mounted);
}

void keep_common_values(EventSpec& spec) {
    if (spec.parts.size() < 2 ||
        !std::ranges::all_of(spec.parts, [](const EventPart& part) { return part.values != nullptr; }))
        return;
    const auto is_text = [](const perf::ValueField& field) { return field.kind == perf::ValueKind::text; };
    const auto find = [&](const EventPart& part, const perf::ValueField& wanted) {
        const perf::ValueFields& fields = part.values->fields;
        return std::ranges::find_if(fields, [&](const perf::ValueField& field) {
            return field.name == wanted.name && is_text(field) == is_text(wanted);
        });
    };
    perf::ValueFields common;
    for (const perf::ValueField& field : spec.parts.front().values->fields)
        if (std::ranges::all_of(spec.parts,
                                [&](const EventPart& part) { return find(part, field) != part.values->fields.end(); }))
            common.push_back(field);
    for (EventPart& part : spec.parts) {
        perf::SampleValues values{{}, part.values->print_format};
        for (const perf::ValueField& field : common) values.fields.push_back(*find(part, field));
        part.values = std::make_shared<const perf::SampleValues>(std::move(values));
    }
}

Result<std::vector<std::string>> matching_tracepoints(std::string_view system, std::string_view pattern,
                                                      const Sysfs& sysfs) {
    if (!is_part_of_name(system) || system.find('*') != std::string_view::npos)
        return fail(ErrorCode::invalid,
                    fmt::format("tracepoints {}:{}: only the part after the colon may have *", system, pattern));
    bool mounted = false;
    std::vector<std::string> matches;
    for (const std::string& folder : tracefs_folders(sysfs)) {
        auto names = sysfs.list(fmt::format("{}/events/{}", folder, system));
        if (!names && names.error().code == ErrorCode::permission) return no_access(system, pattern);
        mounted = mounted || sysfs.list(folder + "/events").has_value();
        if (!names) continue;
        for (std::string& name : *names)
            // The two files beside the folders of events switch all events of the system.
            if (name != "enable" && name != "filter" && matches_wildcards(pattern, name))
                matches.push_back(std::move(name));
        if (!matches.empty()) break;
    }
    if (matches.empty()) return missing(system, pattern, mounted);
    std::sort(matches.begin(), matches.end());
    return matches;
}

Result<std::vector<perf::TracepointField>> tracepoint_fields(std::string_view system, std::string_view event,
                                                             const Sysfs& sysfs) {
    for (const std::string& folder : tracefs_folders(sysfs))
        if (const auto format = sysfs.read(fmt::format("{}/events/{}/{}/format", folder, system, event)))
            return perf::parse_tracepoint_format(*format);
    return missing(system, event, true);
}

// Lines of /proc/mounts: device, mount point (a space is \040), type.
std::vector<std::string> tracefs_folders(const Sysfs& sysfs) {
    std::vector<std::string> folders{"kernel/tracing", "kernel/debug/tracing"};
    const auto mounts = sysfs.read("../proc/self/mounts");
    if (!mounts) return folders;
    for (std::string_view rest = *mounts; !rest.empty();) {
        const std::string_view line = rest.substr(0, rest.find('\n'));
        rest.remove_prefix(std::min(line.size() + 1, rest.size()));
        const std::size_t first = line.find(' ');
        const std::size_t second = line.find(' ', first + 1);
        if (first == std::string_view::npos || second == std::string_view::npos) continue;
        const std::string_view type = line.substr(second + 1);
        const bool debug = type.starts_with("debugfs ");
        if (!debug && !type.starts_with("tracefs ")) continue;
        std::string folder = fmt::format("..{}{}", line.substr(first + 1, second - first - 1), debug ? "/tracing" : "");
        for (std::size_t at = 0; (at = folder.find("\\040", at)) != std::string::npos;) folder.replace(at++, 4, " ");
        folders.push_back(std::move(folder));
    }
    return folders;
}

}  // namespace flamewire::agent
