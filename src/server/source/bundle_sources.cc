#include "server/source/bundle_sources.h"

#include <algorithm>
#include <optional>

#include "base/file.h"
#include "profile/query/code_heat.h"
#include "profile/query/query.h"
#include "server/session/side_files.h"
#include "server/session/source_bundle.h"

namespace flamewire::server {
namespace {

// The files that the lines of the profile name, heaviest first.
std::vector<std::string> file_names(const Session& session) {
    return session.read([](const profile::Store& store) {
        std::vector<std::string> names;
        for (const profile::FileRow& row : profile::source_files(store, {}))
            if (row.file != 0) names.emplace_back(store.string(row.file));
        return names;
    });
}

std::optional<BundledSource> found_source(SourceLookup& sources, const std::string& name) {
    SourceMatch match = sources.find(name);
    if (!match.found) return std::nullopt;
    auto text = read_source(match.path);
    if (!text) return std::nullopt;
    return BundledSource{name, std::move(match.path), *std::move(text)};
}

}  // namespace

Result<BundleSourcesResult> bundle_sources(const Session& session, SourceLookup& sources) {
    auto before = read_source_bundle(session.stream_path()).value_or(std::vector<BundledSource>{});
    BundleSourcesResult result;
    std::vector<BundledSource> files;
    constexpr std::size_t overhead = 32;  // upper limit per message
    std::size_t message_bytes = 0;
    for (const std::string& name : file_names(session)) {
        std::optional<BundledSource> source = found_source(sources, name);
        if (!source) {
            const auto at = std::ranges::find(before, name, &BundledSource::name);
            if (at != before.end()) source = std::move(*at);
        }
        if (!source) {
            result.not_found.push_back(name);
            continue;
        }
        const std::size_t size = source->name.size() + source->path.size() + source->text.size() + overhead;
        if (files.size() == max_source_bundle_files || message_bytes + size > max_source_bundle_bytes) {
            result.no_room.push_back(name);
            continue;
        }
        message_bytes += size;
        result.bytes += source->text.size();
        files.push_back(*std::move(source));
    }
    result.files = files.size();
    if (!files.empty())
        TRY(replace_file(side_file(session.stream_path(), sources_name), as_bytes_view(encode_source_bundle(files))));
    return result;
}

}  // namespace flamewire::server
