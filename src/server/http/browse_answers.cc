#include "server/http/browse_answers.h"

#include "base/json_writer.h"

namespace flamewire::server {
namespace {

void write_entry(JsonWriter& json, const BrowseEntry& entry) {
    static constexpr std::string_view kinds[] = {"folder", "file", "other"};
    json.object();
    json.member("name", entry.name);
    json.member("kind", kinds[static_cast<std::size_t>(entry.kind)]);
    json.member("size_bytes", entry.size_bytes);
    json.member("link", entry.link);
    json.member("outside", entry.outside);
    if (entry.elf) {
        json.key("elf");
        json.object();
        json.member("arch", entry.elf->arch);
        json.member("build_id", entry.elf->build_id);
        json.member("symbols", entry.elf->symbols);
        json.member("debug_info", entry.elf->debug_info);
        json.end_object();
    }
    json.end_object();
}

}  // namespace

Answer browse_answer(const std::vector<BrowseRoot>& roots, const Request& request) {
    const auto listing = browse(roots, request.parameter("path"), request.parameter("q"));
    if (!listing) return error_answer(listing.error());
    JsonWriter json;
    json.object();
    json.member("path", listing->path);
    json.member("parent", listing->parent);
    json.list("roots", roots, [&](const BrowseRoot& root) { json.text(root.real); });
    json.list("entries", listing->entries, [&](const BrowseEntry& entry) { write_entry(json, entry); });
    json.member("left_out", listing->left_out);
    json.end_object();
    return json_answer(json.take());
}

}  // namespace flamewire::server
