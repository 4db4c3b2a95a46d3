// What a person says of a session: a name, tags, and that it is to be kept. It stands in a file of its own beside the
// stream (label.json), because unlike the sidecar it cannot be made again from the stream.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "server/session/json_writer.h"

namespace flamewire::server {

// Bytes of UTF-8, without control characters.
inline constexpr std::size_t max_session_name_bytes = 256;
inline constexpr std::size_t max_tags = 64, max_tag_key_bytes = 64, max_tag_value_bytes = 256;

// A key is one word without '='; a value may be any text, also none.
using Tags = std::map<std::string, std::string, std::less<>>;
using Tag = std::pair<std::string, std::string>;

struct Label {
    std::string name;   // empty: none was given, the target's stands for it
    Tags tags;          // by key
    bool keep = false;  // pinned: no rule deletes it
    bool operator==(const Label&) const = default;
};

// What is not named stays.
struct LabelChange {
    std::optional<std::string> name;
    std::vector<std::pair<std::string, std::optional<std::string>>> tags;  // without a value: to be removed
    std::optional<bool> keep;
};

// "KEY=VALUE". invalid: one sentence.
Result<Tag> parse_tag(std::string_view text);
// {"name":text,"tags":{key:text or null},"keep":boolean}, each of them optional (RFC 7396). invalid: one sentence.
Result<LabelChange> parse_label_change(std::string_view json);
// The label after the change. invalid: one sentence that names the bound.
Result<Label> changed(Label label, const LabelChange& change);

// "name", "tags" and "keep" as members of the object that is open.
void write_label_members(JsonWriter& json, const Label& label);

// The file: {"schema":1,"label":{"name","tags","keep"}}. invalid: what is wrong with it.
std::string encode_label(const Label& label);
Result<Label> parse_label(std::string_view json);

// A file that is not there is an empty label. Blocking.
Result<Label> read_label(const std::string& path);
// In one step, and on the disk when it returns. Blocking.
Result<bool> write_label(const std::string& path, const Label& label);

}  // namespace flamewire::server
