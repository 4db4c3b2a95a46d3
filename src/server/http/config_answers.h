// GET and PATCH /api/config, GET and POST /api/config/toolchain, POST /api/modules: where symbols and sources come from.
#pragma once

#include <vector>

#include "server/http/request.h"
#include "server/session/catalog.h"
#include "server/session/symbolization.h"
#include "server/session/upload_store.h"
#include "server/source/browse.h"
#include "server/source/settings.h"
#include "server/source/source_lookup.h"

namespace flamewire::server {

class ConfigAnswers {
public:
    // `roots`: the folders that the page may list, and use files of.
    ConfigAnswers(Settings& settings, SourceLookup& sources, symbol::Symbolizer& symbolizer, Symbolization& symbols,
                  Catalog& catalog, const std::vector<BrowseRoot>& roots)
        : settings_(settings),
          sources_(sources),
          symbolizer_(symbolizer),
          symbols_(symbols),
          catalog_(catalog),
          roots_(roots) {}

    [[nodiscard]] Answer current() const;
    Answer change(const Request& request);
    Answer change_toolchain(const Request& request);
    // Uses a file on the server, or an uploaded one, for a module.
    Answer set_module_file(const Session& session, const Request& request, const UploadStore& uploads);

private:
    // `only`: the members that the body may have. Empty: all.
    Answer change(const Request& request, std::initializer_list<std::string_view> only);
    Answer apply(SettingsValues values);
    [[nodiscard]] std::vector<std::string> notes_about(const SettingsValues& values) const;

    Settings& settings_;
    SourceLookup& sources_;
    symbol::Symbolizer& symbolizer_;
    Symbolization& symbols_;
    Catalog& catalog_;
    const std::vector<BrowseRoot>& roots_;
};

}  // namespace flamewire::server
