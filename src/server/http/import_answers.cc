#include "server/http/import_answers.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/json_writer.h"
#include "server/http/parameters.h"
#include "server/limits.h"
#include "wire/control.h"

namespace flamewire::server {
namespace {

void write_import(JsonWriter& json, const Imports::Import& import) {
    static constexpr std::string_view states[] = {"running", "done", "failed", "cancelled"};
    json.object();
    json.member("id", import.id);
    json.member("name", import.name);
    json.member("state", states[static_cast<std::size_t>(import.state)]);
    json.member("read_bytes", import.read_bytes);
    json.member("total_bytes", import.total_bytes);
    json.member("session", import.session);
    json.member("problem", import.problem);
    json.end_object();
}

struct RequestedEvents {
    std::string upload, name;
};
Result<RequestedEvents> parse(const std::string& body) {
    const auto document = wire::parse_object(body);
    RequestedEvents wanted;
    if (document) wanted = {wire::text_member(*document, "upload"), wire::text_member(*document, "name")};
    if (wanted.upload.empty())
        return fail(ErrorCode::invalid, R"(to begin an import, send {"upload": ID, "name": FILE})");
    return wanted;
}

}  // namespace

Answer imports_answer(Imports& imports, UploadStore& uploads, const Request& request) {
    JsonWriter json;
    if (request.method != "POST") {
        json.object();
        json.list("imports", imports.list(), [&](const Imports::Import& import) { write_import(json, import); });
        json.end_object();
        return json_answer(json.take());
    }
    const auto wanted = parse(request.body);
    if (!wanted) return error_answer(wanted.error());
    const auto running = std::ranges::count(imports.list(), Imports::State::running, &Imports::Import::state);
    if (static_cast<std::size_t>(running) >= limits::imports_waiting) {
        limit_reached(Limit::imports_waiting);
        return error_answer(409, "conflict",
                            "too many imports wait for their turn: cancel some, or begin this one later");
    }
    auto path = uploads.file(wanted->upload);
    if (!path) return error_answer(path.error());
    const std::string id =
        imports.begin(*std::move(path), wanted->name,
                      [&uploads, upload = wanted->upload](const auto&) { (void)uploads.remove(upload); });
    const auto import = imports.find(id);
    if (!import) return error_answer(404, "not_found", "the import is gone");
    write_import(json, *import);
    return json_answer(json.take());
}

Answer import_answer(Imports& imports, const std::string& id, const Request& request) {
    Result<Imports::Import> import = fail(ErrorCode::not_found, fmt::format("there is no import {:.100}", id));
    if (request.method == "DELETE")
        import = imports.cancel(id);
    else if (auto found = imports.find(id))
        import = *std::move(found);
    if (!import) return error_answer(import.error());
    JsonWriter json;
    write_import(json, *import);
    return json_answer(json.take());
}

}  // namespace flamewire::server
