// GET /api/modules: what is known of the files of a session's modules, with their weights. POST: a file for one of them.
#pragma once

#include "server/http/request.h"
#include "server/http/settings.h"
#include "server/session/json_writer.h"
#include "server/session/session.h"
#include "server/session/upload_store.h"

namespace flamewire::server {

// Why JIT code has no names, from the agent's notice.
symbol::ModuleReport without_names(const profile::Store& store, const profile::Module& module);

void write_fetch(JsonWriter& json, const ModuleFetch& fetch);
// The Module object of docs/openapi.yaml. `nameless_in`: its store, when it is code made at run time without names.
void write_module(JsonWriter& json, const profile::Module& module, const symbol::ModuleReport* report,
                  const ModuleFetch* fetch, const ModuleFetch* debug_fetch,
                  const profile::Store* nameless_in = nullptr);
// nullptr when the module was asked of nobody.
const ModuleFetch* fetch_of(const std::map<profile::ModuleId, ModuleFetch>& fetches, profile::ModuleId module);

Answer modules_answer(const Session& session, const Request& request);

// What a POST means, checked: the module, and the file here that is to be used for it.
struct GivenFile {
    symbol::ModuleIdentity module;
    std::string path;    // on this machine
    std::string upload;  // its id, when it was uploaded
};
// invalid with a sentence when the file is no ELF file or not of the module's build.
Result<GivenFile> given_file(const Session& session, const Request& request, const UploadStore& uploads);

}  // namespace flamewire::server
