// The export formats of a session: one list for /api/export/session and `flamewire export`. Each format is a file in
// this folder and an entry of export_formats().
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "profile/query/grouping.h"
#include "profile/store/model.h"
#include "profile/store/store.h"

namespace flamewire::profile {

// Facts about a session that formats write and that the store does not have.
struct ExportAbout {
    std::string name;             // what was profiled
    std::int64_t started_ns = 0;  // wall clock at the first sample; 0: unknown
    std::vector<std::pair<std::string, std::string>> tags;
    bool weights = false;           // folded stacks: write weights in the event's unit instead of sample counts
    GroupBy group = GroupBy::none;  // folded stacks and pictures only
};

struct ExportFormat {
    std::string_view name;   // as in --format: "collapsed"
    std::string_view title;  // in a sentence: "folded stacks, a line each"
    std::string_view content_type;
    std::string_view extension;  // ".collapsed"
    bool one_event;              // the filter must name the event; other formats take all events if it names none
    bool grouped;                // supports the root frames of `about.group`
    Result<std::string> (*write)(const Store& store, const Filter& filter, const ExportAbout& about);
};

std::span<const ExportFormat> export_formats();
// nullptr: there is no format of this name.
const ExportFormat* find_export_format(std::string_view name);
// "collapsed, json, …", for messages.
std::string export_format_names();

}  // namespace flamewire::profile
