#include "server/http/module_answers.h"

#include <fmt/format.h>
#include <system_error>

#include <filesystem>

#include "base/file.h"
#include "base/hex.h"
#include "elf/elf_file.h"
#include "profile/query/query.h"
#include "server/http/session_view.h"
#include "views/quality_warnings.h"
#include "wire/control.h"

namespace flamewire::server {
namespace {

using symbol::Quality;

// The quality of a module's symbols in one word.
std::string_view state_of(const profile::Module& module, const symbol::ModuleReport* report, bool nameless,
                          const ModuleFetch* debug_fetch) {
    if (module.identity.kind == symbol::ModuleKind::jit) return nameless ? "unnamed" : "recorded";
    if (report == nullptr) return "pending";
    const bool fetching = debug_fetch != nullptr && (debug_fetch->state == ModuleFetch::State::asked ||
                                                     debug_fetch->state == ModuleFetch::State::arriving);
    if (fetching && report->quality < Quality::debug_info) return "fetching";
    if (report->from_cache) return "kept";
    switch (report->quality) {
        case Quality::debug_info: return "debug_info";
        case Quality::go_table: return "go_table";
        case Quality::symbols: return "symbols";
        case Quality::linker_map: return "linker_map";
        case Quality::dynamic_symbols: return "stripped";
        case Quality::none: break;
    }
    if (!report->file.empty()) return "stripped";
    return report->mismatch ? "mismatch" : "not_found";
}

std::string_view found_name(symbol::FoundBy found) {
    static constexpr std::string_view names[] = {
        "",           "uploaded",   "given",      "path_map",     "sysroot",      "target_path", "agent",
        "debug_tree", "debug_link", "debug_name", "kernel_place", "this_machine", "debuginfod"};
    return names[static_cast<std::size_t>(found)];
}

std::string short_id(const std::string& build_id) { return build_id.empty() ? "none" : to_hex(build_id).substr(0, 16); }

// Its file name on the target, without the mark of a deleted file.
std::string name_of(const symbol::ModuleIdentity& module) {
    std::string name = std::filesystem::path(module.path).filename().string();
    if (const std::size_t mark = name.rfind(" (deleted)"); mark != std::string::npos) name.resize(mark);
    return name;
}

Result<std::string> build_id_of(const std::string& path) {
    const UniqueFd fd = TRY(open_read(path));
    const elf::ByteSource source = elf::source_of_fd(fd.get());
    const elf::Header header = TRY(elf::read_header(source));
    return elf::read_build_id(source, header).value_or(std::string());
}

}  // namespace

void write_fetch(JsonWriter& json, const ModuleFetch& fetch) {
    static constexpr std::string_view states[] = {"asked", "arriving", "arrived", "refused", "interrupted"};
    json.object();
    json.member("state", states[static_cast<std::size_t>(fetch.state)]);
    json.member("bytes", fetch.got);
    json.member("total_bytes", fetch.total);
    json.member("problem", fetch.problem);
    json.end_object();
}

void write_module(JsonWriter& json, const profile::Module& module, const symbol::ModuleReport* report,
                  const ModuleFetch* fetch, const ModuleFetch* debug_fetch, const profile::Store* nameless_in) {
    static constexpr std::string_view kinds[] = {"file", "kernel", "vdso", "jit"};
    static constexpr std::string_view qualities[] = {"none",    "linker_map", "dynamic_symbols",
                                                     "symbols", "go_table",   "debug_info"};
    symbol::ModuleReport known;
    if (nameless_in != nullptr)
        known = views::without_names(*nameless_in, module);
    else if (report != nullptr)
        known = *report;
    json.object();
    json.member("name", module.name);
    json.member("path", module.identity.path);
    json.member("kind", kinds[static_cast<std::size_t>(module.identity.kind)]);
    json.member("build_id", to_hex(module.identity.build_id));
    json.member("state", state_of(module, report, nameless_in != nullptr, debug_fetch));
    json.member("quality", report == nullptr ? "pending" : qualities[static_cast<std::size_t>(known.quality)]);
    json.member("file", known.file);
    json.member("found", found_name(known.found));
    json.member("debug_file", known.debug_file);
    json.member("debug_found", found_name(known.debug_found));
    json.member("map_file", known.map_file);
    json.member("problem", known.problem);
    json.member("remedy", known.remedy);
    json.texts("tried", known.tried);
    for (const auto& [name, known_fetch] : {std::pair{"fetch", fetch}, std::pair{"debuginfod", debug_fetch}}) {
        json.key(name);
        if (known_fetch != nullptr)
            write_fetch(json, *known_fetch);
        else
            json.null();
    }
    json.end_object();
}

const ModuleFetch* fetch_of(const std::map<profile::ModuleId, ModuleFetch>& fetches, profile::ModuleId module) {
    const auto fetch = fetches.find(module);
    return fetch == fetches.end() ? nullptr : &fetch->second;
}

Answer modules_answer(const Session& session, const Request& request) {
    const auto reports = session.symbols().reports();
    const auto fetches = session.symbols().fetches(), debug_fetches = session.symbols().debug_fetches();
    return with_view(session, request, [&](const profile::Store& store, const views::View& view, const ViewHead& head) {
        std::vector<profile::ModuleRow> rows = profile::modules(store, view.filter);
        const profile::Weight total = profile::total_of(store, view.filter);
        // Modules without samples in the view follow at the end.
        std::vector<bool> listed(store.modules().size());
        for (const profile::ModuleRow& row : rows) listed[row.module] = true;
        for (profile::ModuleId id = 1; id < listed.size(); ++id)
            if (!listed[id]) rows.push_back({id, {}, {}});
        const std::vector<bool> nameless = profile::nameless_jit_modules(store);
        JsonWriter json;
        json.object();
        write_head(json, head, total);
        json.list("modules", rows, [&](const profile::ModuleRow& row) {
            const auto report = reports.find(row.module);
            json.object();
            json.key("module");
            write_module(json, store.modules()[row.module], report == reports.end() ? nullptr : &report->second,
                         fetch_of(fetches, row.module), fetch_of(debug_fetches, row.module),
                         nameless[row.module] ? &store : nullptr);
            json.member("self", row.self.weight);
            json.member("total", row.total.weight);
            json.member("self_samples", row.self.samples);
            json.member("total_samples", row.total.samples);
            json.member("self_percent", views::percent(row.self.weight, total.weight));
            json.member("total_percent", views::percent(row.total.weight, total.weight));
            json.end_object();
        });
        json.end_object();
        return json_answer(json.take());
    });
}

Result<GivenFile> given_file(const Session& session, const Request& request, const UploadStore& uploads) {
    const auto body = wire::parse_object(request.body);
    if (!body) return fail(ErrorCode::invalid, "the body is not a JSON object: " + body.error().message);
    const std::string path = wire::text_member(*body, "path"), build_id = wire::text_member(*body, "build_id");
    GivenFile given{{}, wire::text_member(*body, "file"), wire::text_member(*body, "upload")};
    if (given.path.empty() == given.upload.empty())
        return fail(ErrorCode::invalid, "give either file (a path on the server) or upload (the id of one)");
    const bool known = session.read([&](const profile::Store& store) {
        for (const profile::Module& module : store.modules().subspan(1)) {
            if (module.identity.path != path || to_hex(module.identity.build_id) != build_id) continue;
            given.module = module.identity;
            return true;
        }
        return false;
    });
    if (!known) return fail(ErrorCode::not_found, fmt::format("the session has no module {:.200}", path));
    if (given.module.kind != symbol::ModuleKind::file && given.module.kind != symbol::ModuleKind::kernel)
        return fail(ErrorCode::invalid, fmt::format("{:.200} is code without a file", path));
    if (!given.upload.empty()) given.path = TRY(uploads.file(given.upload));
    const std::string shown = given.upload.empty() ? given.path : "the uploaded file";
    std::error_code ignored;
    if (!std::filesystem::is_regular_file(given.path, ignored))
        return fail(ErrorCode::invalid, fmt::format("{:.500} is not a file on this machine", given.path));
    const auto found = build_id_of(given.path);
    if (!found)
        return fail(ErrorCode::invalid, fmt::format("{:.500} is not an ELF file: {}", shown, found.error().message));
    if (!given.module.build_id.empty() && *found != given.module.build_id)
        return fail(ErrorCode::invalid,
                    fmt::format("build-id mismatch: {:.500} has {}, the target runs {}: give the unstripped file, or "
                                "its debug file, of exactly the build that runs on the target",
                                shown, short_id(*found), short_id(given.module.build_id)));
    if (given.module.build_id.empty() && given.module.kind == symbol::ModuleKind::kernel)
        return fail(ErrorCode::invalid, "the build of the target's kernel is unknown, so no file can be verified");
    // Only the name connects a file on the server to a module without a build-id.
    const std::string wanted = name_of(given.module);
    if (given.module.build_id.empty() && given.upload.empty() &&
        std::filesystem::path(given.path).filename().string() != wanted)
        return fail(ErrorCode::invalid,
                    fmt::format("the target's file has no build-id, so its file here is known by its name: give one "
                                "that is called {:.200}, or upload it",
                                wanted));
    return given;
}

}  // namespace flamewire::server
