// What a user assigns to a session: a name, tags, and a pin that protects it from deletion. It is in a file of its own
// beside the stream (label.json), because unlike the sidecar it cannot be rebuilt from the stream.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json_writer.h"
#include "base/result.h"

namespace flamewire::server {

// In bytes of UTF-8, without control characters.
inline constexpr std::size_t max_session_name_bytes = 256;
inline constexpr std::size_t max_tags = 64, max_tag_key_bytes = 64, max_tag_value_bytes = 256;

// A key is one word without '='. A value may be any text, including an empty one.
using Tags = std::map<std::string, std::string, std::less<>>;
using Tag = std::pair<std::string, std::string>;

struct Label {
    std::string name;   // empty: use the target's name
    Tags tags;          // by key
    bool keep = false;  // pinned: no rule deletes it
    bool operator==(const Label&) const = default;
};

// Members that are not set stay unchanged.
struct LabelChange {
    std::optional<std::string> name;
    std::vector<std::pair<std::string, std::optional<std::string>>> tags;  // without a value: remove the tag
    std::optional<bool> keep;
};

// "KEY=VALUE". invalid: one sentence.
Result<Tag> parse_tag(std::string_view text);
// {"name":text,"tags":{key:text or null},"keep":boolean}, each of them optional (RFC 7396). invalid: one sentence.
Result<LabelChange> parse_label_change(std::string_view json);
// Applies the change. invalid: one sentence that names the limit.
Result<Label> changed(Label label, const LabelChange& change);

// Writes "name", "tags" and "keep" as members of the open object.
void write_label_members(JsonWriter& json, const Label& label);

// The file: {"schema":1,"label":{"name","tags","keep"}}. invalid: one sentence with the problem.
std::string encode_label(const Label& label);
Result<Label> parse_label(std::string_view json);

// A missing file is an empty label. Blocking.
Result<Label> read_label(const std::string& path);
// Replaces the file atomically. It is on disk when this returns. Blocking.
Result<bool> write_label(const std::string& path, const Label& label);

}  // namespace flamewire::server
