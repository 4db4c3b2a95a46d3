// Writes a call tree as the columns that the page draws.
#pragma once

#include <span>
#include <string>

#include "base/json_writer.h"
#include "profile/query/grouping.h"
#include "profile/query/query.h"
#include "views/view.h"

namespace flamewire::server {

// What all views begin with: session, event, unit and data_version.
struct ViewHead {
    std::string_view session;
    const views::View& view;
    std::uint64_t data_version = 0;
};
void write_view(JsonWriter& json, const ViewHead& head);
// The same, plus total.
void write_head(JsonWriter& json, const ViewHead& head, const profile::Weight& total);

// A member {samples, weight}.
void write_weight(JsonWriter& json, std::string_view name, const profile::Weight& weight);
// Members of an open object: tid, pid and comm.
void write_thread(JsonWriter& json, const profile::Thread& thread);

void write_flamegraph(JsonWriter& json, const ViewHead& head, const profile::Store& store,
                      const profile::GroupedTree& tree);
// Only the tree's members, after a head. `groups`: see GroupedTree.
void write_tree(JsonWriter& json, const profile::Store& store, const profile::CallTree& tree,
                std::span<const std::string> groups = {});
void write_sandwich(JsonWriter& json, const ViewHead& head, const profile::Store& store,
                    const profile::Sandwich& sandwich);
void write_functions(JsonWriter& json, const ViewHead& head, const profile::Store& store, const profile::Weight& total,
                     const std::vector<profile::FunctionRow>& rows);

}  // namespace flamewire::server
