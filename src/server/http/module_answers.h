// GET /api/modules: the files of a session's modules with their symbols and weights. POST: provides a file for one of
// them.
#pragma once

#include "base/json_writer.h"
#include "server/http/request.h"
#include "server/session/session.h"
#include "server/session/upload_store.h"
#include "server/source/settings.h"

namespace flamewire::server {

void write_fetch(JsonWriter& json, const ModuleFetch& fetch);
// The Module object of docs/openapi.yaml. `nameless_in`: the store of a JIT module without symbols; otherwise null.
void write_module(JsonWriter& json, const profile::Module& module, const symbol::ModuleReport* report,
                  const ModuleFetch* fetch, const ModuleFetch* debug_fetch,
                  const profile::Store* nameless_in = nullptr);
// nullptr if the module was not requested.
const ModuleFetch* fetch_of(const std::map<profile::ModuleId, ModuleFetch>& fetches, profile::ModuleId module);

Answer modules_answer(const Session& session, const Request& request);

// A checked POST: the module, and the local file to use for it.
struct GivenFile {
    symbol::ModuleIdentity module;
    std::string path;    // on this machine
    std::string upload;  // its id, if it was uploaded
};
// invalid: the file is not an ELF file or not of the module's build.
Result<GivenFile> given_file(const Session& session, const Request& request, const UploadStore& uploads);

}  // namespace flamewire::server
