#include "server/http/archive_answers.h"

#include <fmt/format.h>

#include "base/json_writer.h"
#include "server/session/archive.h"
#include "server/source/bundle_sources.h"

namespace flamewire::server {

bool is_archive(const Request& request) {
    return request.path.starts_with("/api/export/session/") && request.parameter("format") == "flamewire";
}

Answer archive_answer(Session& session, const Request& request, SourceLookup& sources, const std::string& scratch_dir) {
    const std::string_view with_sources = request.parameter("sources");
    if (!with_sources.empty() && with_sources != "0" && with_sources != "1")
        return error_answer(400, "validation", "sources must be 0 or 1");
    if (with_sources == "1")
        if (const auto result = bundle_sources(session, sources); !result) return error_answer(result.error());
    session.symbols().write_cache();
    auto archive = write_archive(session.id(), session.stream_path(), scratch_dir);
    if (!archive) return error_answer(archive.error());
    Answer answer = download("application/zstd", {}, fmt::format("{}.flamewire", session.id()));
    answer.file = std::make_shared<FileBody>(std::move(archive->fd), archive->size);
    return answer;
}

Answer bundle_sources_answer(const Session& session, SourceLookup& sources) {
    const auto result = bundle_sources(session, sources);
    if (!result) return error_answer(result.error());
    JsonWriter json;
    json.object();
    json.member("files", result->files);
    json.member("bytes", result->bytes);
    json.texts("not_found", result->not_found);
    json.texts("no_room", result->no_room);
    json.end_object();
    return json_answer(json.take());
}

}  // namespace flamewire::server
