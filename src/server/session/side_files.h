// The files that a session has beside its stream: in its directory under these names, beside a single file NAME.flw as
// NAME.flw.… .
#pragma once

#include <array>
#include <string>
#include <string_view>

namespace flamewire::server {

inline constexpr std::string_view stream_name = "stream.flw";
inline constexpr std::string_view symbols_name = "symbols.pb.zst";  // docs/kept.proto
inline constexpr std::string_view sources_name = "sources.pb.zst";  // docs/kept.proto
inline constexpr std::string_view label_name = "label.json";
// Empty: the session was imported, so it is a copy that no agent continues.
inline constexpr std::string_view imported_name = "imported";

// What goes with a session to another machine, besides the stream. The rest is made anew from it.
inline constexpr std::array travelling_files = {symbols_name, sources_name, label_name};

// Where a side file of that stream stands.
std::string side_file(const std::string& stream_path, std::string_view name);

}  // namespace flamewire::server
