#include "server/session/label.h"

#include <fmt/format.h>
#include <rapidjson/document.h>

#include <algorithm>

#include "base/file.h"
#include "base/utf8.h"
#include "wire/control.h"

namespace flamewire::server {
namespace {

constexpr int label_schema = 1;
// 64 tags of maximum length need 20 KiB.
constexpr std::size_t max_label_file_bytes = std::size_t{64} << 10;

bool has_control(std::string_view text) {
    return std::ranges::any_of(text, [](unsigned char c) { return c < 0x20 || c == 0x7f; });
}

std::string_view trimmed(std::string_view text) {
    while (text.starts_with(' ')) text.remove_prefix(1);
    while (text.ends_with(' ')) text.remove_suffix(1);
    return text;
}

std::string_view text_of(const rapidjson::Value& value) { return {value.GetString(), value.GetStringLength()}; }

Result<bool> check_text(std::string_view what, std::string_view text, std::size_t limit) {
    if (text.size() > limit) return fail(ErrorCode::invalid, fmt::format("{} is at most {} bytes long", what, limit));
    if (has_control(text) || !is_valid_utf8(text))
        return fail(ErrorCode::invalid, fmt::format("{} is one line of text in UTF-8", what));
    return true;
}

Result<bool> check_tag(std::string_view key, std::string_view value) {
    if (key.empty() || key.find_first_of("= ") != std::string_view::npos)
        return fail(ErrorCode::invalid, "a tag is KEY=VALUE, its key one word without =");
    TRY(check_text("the key of a tag", key, max_tag_key_bytes));
    TRY(check_text("the value of a tag", value, max_tag_value_bytes));
    return true;
}

Result<std::vector<std::pair<std::string, std::optional<std::string>>>> parse_tags(const rapidjson::Value& value) {
    if (!value.IsObject())
        return fail(ErrorCode::invalid, R"(tags must be an object: {"key": "value"}, null removes one)");
    std::vector<std::pair<std::string, std::optional<std::string>>> tags;
    for (const auto& member : value.GetObject()) {
        auto& [key, text] = tags.emplace_back(text_of(member.name), std::nullopt);
        if (member.value.IsString())
            text = trimmed(text_of(member.value));
        else if (!member.value.IsNull())
            return fail(ErrorCode::invalid,
                        fmt::format("the value of tag {:.64} is a text, or null to remove it", key));
    }
    return tags;
}

Result<LabelChange> change_of(const rapidjson::Value& object) {
    LabelChange change;
    for (const auto& member : object.GetObject()) {
        const std::string_view name = text_of(member.name);
        if (name == "name") {
            if (!member.value.IsString()) return fail(ErrorCode::invalid, "name must be a string");
            change.name = trimmed(text_of(member.value));
        } else if (name == "tags") {
            change.tags = TRY(parse_tags(member.value));
        } else if (name == "keep") {
            if (!member.value.IsBool()) return fail(ErrorCode::invalid, "keep must be true or false");
            change.keep = member.value.GetBool();
        } else {
            return fail(ErrorCode::invalid,
                        fmt::format("of a session name, tags and keep can be changed, not {:.40}", name));
        }
    }
    return change;
}

}  // namespace

Result<Tag> parse_tag(std::string_view text) {
    const std::size_t equals = text.find('=');
    if (equals == std::string_view::npos)
        return fail(ErrorCode::invalid, fmt::format("a tag is KEY=VALUE, not {:.80}", text));
    const std::string_view key = text.substr(0, equals), value = trimmed(text.substr(equals + 1));
    TRY(check_tag(key, value));
    return Tag(key, value);
}

Result<LabelChange> parse_label_change(std::string_view json) {
    const auto document = wire::parse_object(json);
    if (!document)
        return fail(ErrorCode::invalid,
                    R"(a session is changed with {"name": TEXT, "tags": {KEY: TEXT}, "keep": BOOL})");
    return change_of(*document);
}

Result<Label> changed(Label label, const LabelChange& change) {
    if (change.name) {
        TRY(check_text("the name of a session", *change.name, max_session_name_bytes));
        label.name = *change.name;
    }
    for (const auto& [key, value] : change.tags) {
        if (value) {
            TRY(check_tag(key, *value));
            label.tags[key] = *value;
        } else {
            label.tags.erase(key);
        }
    }
    if (label.tags.size() > max_tags)
        return fail(ErrorCode::invalid, fmt::format("a session has at most {} tags: remove one first", max_tags));
    label.keep = change.keep.value_or(label.keep);
    return label;
}

void write_label_members(JsonWriter& json, const Label& label) {
    json.member("name", label.name);
    json.key("tags");
    json.object();
    for (const auto& [key, value] : label.tags) json.member(key, value);
    json.end_object();
    json.member("keep", label.keep);
}

std::string encode_label(const Label& label) {
    JsonWriter json;
    json.object();
    json.member("schema", label_schema);
    json.key("label");
    json.object();
    write_label_members(json, label);
    json.end_object();
    json.end_object();
    return json.take() + "\n";
}

Result<Label> parse_label(std::string_view json) {
    const auto document = TRY(wire::parse_object(json));
    if (wire::number_member(document, "schema") != label_schema)
        return fail(ErrorCode::invalid, "it is of another version");
    const auto written = document.FindMember("label");
    if (written == document.MemberEnd() || !written->value.IsObject())
        return fail(ErrorCode::invalid, "it has no label");
    return changed({}, TRY(change_of(written->value)));
}

Result<Label> read_label(const std::string& path) {
    const auto text = read_file(path, max_label_file_bytes);
    if (!text && text.error().code == ErrorCode::not_found) return Label{};
    if (!text) return std::unexpected(text.error());
    auto label = parse_label(*text);
    if (!label) return fail(ErrorCode::invalid, fmt::format("{} cannot be read: {}", path, label.error().message));
    return label;
}

Result<bool> write_label(const std::string& path, const Label& label) {
    return replace_file(path, as_bytes_view(encode_label(label)), Durable::yes);
}

}  // namespace flamewire::server
