#include "server/http/upload_answers.h"

#include "base/json_writer.h"
#include "server/http/parameters.h"

namespace flamewire::server {
namespace {

static_assert(max_upload_slice <= max_body_bytes);

Answer state_answer(const UploadStore::Upload& upload) {
    JsonWriter json;
    json.object();
    json.member("id", upload.id);
    json.member("offset", upload.got);
    json.member("size", upload.size);
    json.member("whole", upload.whole());
    json.end_object();
    return json_answer(json.take());
}

Result<UploadStore::Upload> take_slice(UploadStore& uploads, const std::string& id, const Request& request) {
    const std::uint64_t offset = TRY(parse_integer("offset", request.parameter("offset")));
    const std::uint64_t size = TRY(parse_integer("size", request.parameter("size")));
    return uploads.add(id, offset, size, request.body);
}

}  // namespace

Answer upload_answer(UploadStore& uploads, const std::string& id, const Request& request) {
    if (request.method == "DELETE") {
        if (auto removed = uploads.remove(id); !removed) return error_answer(removed.error());
        JsonWriter json;
        json.object();
        json.member("ok", true);
        json.end_object();
        return json_answer(json.take());
    }
    const auto upload = request.method == "PUT" ? take_slice(uploads, id, request) : uploads.find(id);
    return upload ? state_answer(*upload) : error_answer(upload.error());
}

}  // namespace flamewire::server
