// What a session can be written as: one list for /api/export/session and `flamewire export`. Each format is a file beside
// this one and an entry of export_formats().
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

// What formats say of a session and its store does not know.
struct ExportAbout {
    std::string name;             // what was profiled
    std::int64_t started_ns = 0;  // wall clock at the first sample; 0: not known
    std::vector<std::pair<std::string, std::string>> tags;
    bool weights = false;           // of folded stacks: numbers are weights in the event's unit, not samples
    GroupBy group = GroupBy::none;  // of folded stacks and pictures
};

struct ExportFormat {
    std::string_view name;   // as in --format: "collapsed"
    std::string_view title;  // in a sentence: "folded stacks, a line each"
    std::string_view content_type;
    std::string_view extension;  // ".collapsed"
    bool one_event;              // the filter names the event; others take all events when it names none
    bool grouped;                // has a place for the root frames of `about.group`
    Result<std::string> (*write)(const Store& store, const Filter& filter, const ExportAbout& about);
};

std::span<const ExportFormat> export_formats();
// nullptr: there is none of this name.
const ExportFormat* find_export_format(std::string_view name);
// "collapsed, json, …", for sentences.
std::string export_format_names();

}  // namespace flamewire::profile
