// Files that a session has beside its stream. In a session directory they have these names; beside a single file
// NAME.flw they are NAME.flw.… .
#pragma once

#include <array>
#include <string>
#include <string_view>

namespace flamewire::server {

inline constexpr std::string_view stream_name = "stream.flw";
inline constexpr std::string_view symbols_name = "symbols.pb.zst";  // docs/kept.proto
inline constexpr std::string_view sources_name = "sources.pb.zst";  // docs/kept.proto
inline constexpr std::string_view label_name = "label.json";
// An empty file. It marks an imported session: a copy that no agent continues.
inline constexpr std::string_view imported_name = "imported";

// Files that move to another machine together with the stream. The others are rebuilt from the stream.
inline constexpr std::array portable_files = {symbols_name, sources_name, label_name};

// The path of a side file of that stream.
std::string side_file(const std::string& stream_path, std::string_view name);
// Returns whether `imported_name` is beside that stream.
bool is_imported(const std::string& stream_path);

}  // namespace flamewire::server
