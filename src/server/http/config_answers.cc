#include "server/http/config_answers.h"

#include <fmt/format.h>
#include <rapidjson/document.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <filesystem>
#include <initializer_list>

#include "base/json_writer.h"
#include "server/http/module_answers.h"
#include "server/source/toolchain.h"
#include "symbol/files/fetched_file.h"
#include "symbol/symbolizer.h"
#include "wire/control.h"
#include "wire/frame.h"

namespace flamewire::server {
namespace {

constexpr std::size_t max_list = 1000;

Result<std::vector<std::string>> texts(const rapidjson::Value& value, std::string_view name) {
    std::vector<std::string> result;
    if (!value.IsArray() || value.Size() > max_list)
        return fail(ErrorCode::invalid, fmt::format("{} must be a list of strings", name));
    for (const auto& element : value.GetArray()) {
        if (!element.IsString()) return fail(ErrorCode::invalid, fmt::format("{} must be a list of strings", name));
        result.emplace_back(element.GetString(), element.GetStringLength());
    }
    return result;
}

Result<std::string> text(const rapidjson::Value& value, std::string_view name) {
    if (!value.IsString()) return fail(ErrorCode::invalid, fmt::format("{} must be a string", name));
    return std::string(value.GetString(), value.GetStringLength());
}

Result<bool> change(SettingsValues& values, std::string_view name, const rapidjson::Value& value) {
    if (name == "binaries") {
        values.binaries = TRY(texts(value, name));
    } else if (name == "binary") {
        const std::string binary = TRY(text(value, name));
        if (binary.empty())
            values.binaries.clear();
        else if (std::find(values.binaries.begin(), values.binaries.end(), binary) == values.binaries.end())
            values.binaries.push_back(binary);
    } else if (name == "maps") {
        values.maps = TRY(texts(value, name));
    } else if (name == "map") {
        const std::string map = TRY(text(value, name));
        if (map.empty())
            values.maps.clear();
        else if (std::find(values.maps.begin(), values.maps.end(), map) == values.maps.end())
            values.maps.push_back(map);
    } else if (name == "source_dir") {
        values.source_dir = TRY(text(value, name));
    } else if (name == "path_map") {
        values.path_map = TRY(texts(value, name));
    } else if (name == "sysroot") {
        values.sysroot = TRY(text(value, name));
    } else if (name == "toolchain_prefix") {
        values.toolchain_prefix = TRY(text(value, name));
    } else if (name == "inline") {
        if (!value.IsBool()) return fail(ErrorCode::invalid, "inline must be true or false");
        values.inlines = value.GetBool();
    } else {
        return fail(ErrorCode::invalid, fmt::format("unknown member {:.60}", name));
    }
    return true;
}

// Whether every path that the request adds is in a folder that the page may see.
Result<bool> check_new_places(const SettingsValues& old, const SettingsValues& values,
                              const std::vector<BrowseRoot>& roots) {
    std::vector<std::string> places;
    const auto add_new = [&](const std::string& before, const std::string& now) {
        if (now != before && !now.empty()) places.push_back(now);
    };
    const auto is_new = [](const std::vector<std::string>& before, const std::string& now) {
        return std::find(before.begin(), before.end(), now) == before.end();
    };
    add_new(old.source_dir, values.source_dir);
    add_new(old.sysroot, values.sysroot);
    for (const std::string& binary : values.binaries)
        if (is_new(old.binaries, binary)) places.push_back(binary);
    for (const std::string& text : values.maps)
        if (is_new(old.maps, text)) places.push_back(TRY(parse_map(text)).file);
    for (const std::string& text : values.path_map)
        if (is_new(old.path_map, text)) places.push_back(TRY(parse_path_map(text)).second);
    for (const std::string& place : places) TRY(check_inside(roots, place));
    return true;
}

// `only`: the members that the body may have. Empty: all.
Result<SettingsValues> changed(SettingsValues values, const std::string& body,
                               std::initializer_list<std::string_view> only, const std::vector<BrowseRoot>& roots) {
    const SettingsValues old = values;
    const auto document = wire::parse_object(body);
    if (!document) return fail(ErrorCode::invalid, "the body is not a JSON object: " + document.error().message);
    bool sysroot_given = false, prefix_given = false;
    for (const auto& member : document->GetObject()) {
        const std::string_view name(member.name.GetString(), member.name.GetStringLength());
        if (only.size() != 0 && std::find(only.begin(), only.end(), name) == only.end())
            return fail(ErrorCode::invalid, fmt::format("unknown member {:.60}", name));
        TRY(change(values, name, member.value));
        sysroot_given = sysroot_given || name == "sysroot";
        prefix_given = prefix_given || name == "toolchain_prefix";
    }
    TRY(check_new_places(old, values, roots));
    TRY(check(values));
    if (prefix_given && !sysroot_given && !values.toolchain_prefix.empty()) {
        if (const auto may = may_run_toolchain(values.toolchain_prefix); !may)
            return fail(may.error().code == ErrorCode::permission ? ErrorCode::permission : ErrorCode::invalid,
                        may.error().message);
        auto sysroot = sysroot_of_toolchain(values.toolchain_prefix);
        if (!sysroot) return fail(ErrorCode::invalid, sysroot.error().message);
        values.sysroot = std::move(*sysroot);
        TRY(check(values));
    }
    return values;
}

// `notes`: nullptr if the settings were not changed.
Answer config_answer(const SettingsValues& values, const std::vector<std::string>* notes) {
    JsonWriter json;
    json.object();
    json.texts("binaries", values.binaries);
    json.texts("maps", values.maps);
    json.member("source_dir", values.source_dir);
    json.texts("path_map", values.path_map);
    json.member("sysroot", values.sysroot);
    json.member("toolchain_prefix", values.toolchain_prefix);
    json.member("inline", values.inlines);
    if (notes != nullptr) json.texts("notes", *notes);
    json.end_object();
    return json_answer(json.take());
}

}  // namespace

Answer ConfigAnswers::current() const { return config_answer(settings_.get(), nullptr); }

Answer ConfigAnswers::change(const Request& request) { return change(request, {}); }

Answer ConfigAnswers::change_toolchain(const Request& request) {
    return change(request, {"sysroot", "toolchain_prefix"});
}

Answer ConfigAnswers::change(const Request& request, std::initializer_list<std::string_view> only) {
    auto values = changed(settings_.get(), request.body, only, roots_);
    if (!values) return error_answer(values.error());
    spdlog::info("{} changes the settings: {}", request.remote, wire::refusal_text(request.body));
    return apply(std::move(*values));
}

Answer ConfigAnswers::apply(SettingsValues values) {
    settings_.set(values);
    sources_.set_config(source_config(values));
    symbolizer_.set_config(symbol_config(values));
    for (const auto& session : catalog_.all_loaded()) {
        session->symbols().reset();
        symbols_.schedule(session);
    }
    const auto notes = notes_about(values);
    return config_answer(values, &notes);
}

Answer ConfigAnswers::set_module_file(const Session& session, const Request& request, const UploadStore& uploads) {
    const auto given = given_file(session, request, uploads);
    if (!given) return error_answer(given.error());
    if (given->upload.empty()) {
        if (const auto inside = check_inside(roots_, given->path); !inside) return error_answer(inside.error());
        SettingsValues values = settings_.get();
        if (std::find(values.binaries.begin(), values.binaries.end(), given->path) == values.binaries.end())
            values.binaries.push_back(given->path);
        // Apply it again even if it was given before: the file may be newer.
        if (const Answer applied = apply(std::move(values)); applied.status != 200) return applied;
    } else {
        const std::string folder = settings_.get().upload_directory;
        std::error_code error;
        std::filesystem::create_directories(folder, error);
        if (!error) std::filesystem::rename(given->path, folder + "/" + symbol::fetched_name(given->module), error);
        if (error) return error_answer(fail_errno("keep the uploaded file in " + folder, error.value()).error());
        symbolizer_.forget(given->module);
        for (const auto& loaded : catalog_.all_loaded()) symbols_.schedule(loaded);
    }
    const symbol::ModuleReport report = symbolizer_.report(given->module);
    const profile::Module module{given->module, std::filesystem::path(given->module.path).filename().string()};
    JsonWriter json;
    json.object();
    json.key("module");
    write_module(json, module, &report, nullptr, nullptr);
    json.end_object();
    return json_answer(json.take());
}

// For each given binary and map: which module of a live session uses it, or why none does.
std::vector<std::string> ConfigAnswers::notes_about(const SettingsValues& values) const {
    std::vector<std::string> notes;
    std::vector<profile::Module> modules;
    for (const auto& session : catalog_.live())
        session->read([&](const profile::Store& store) {
            for (std::size_t i = 1; i < store.modules().size(); ++i) modules.push_back(store.modules()[i]);
        });
    for (const std::string& binary : values.binaries) {
        const std::string name = std::filesystem::path(binary).filename().string();
        for (const profile::Module& module : modules) {
            const symbol::ModuleReport report = symbolizer_.report(module.identity);
            if (report.file == binary)
                notes.push_back(fmt::format("{} is used for {}", binary, module.identity.path));
            else if (module.name == name)
                notes.push_back(fmt::format("{} is not used for {}{}{}", binary, module.identity.path,
                                            report.problem.empty() ? "" : ": ", report.problem));
        }
    }
    for (const std::string& text : values.maps) {
        const auto map = parse_map(text);
        bool used = false;
        for (const profile::Module& module : modules) {
            if (!map || symbolizer_.report(module.identity).map_file != map->file) continue;
            used = true;
            notes.push_back(fmt::format("{} is used for {}", map->file, module.identity.path));
        }
        if (!used && map && !modules.empty())
            notes.push_back(
                fmt::format("{} matches no module of a running session: each has its own symbols or "
                            "another name; to choose one, use MODULE=FILE",
                            map->file));
    }
    std::sort(notes.begin(), notes.end());
    notes.erase(std::unique(notes.begin(), notes.end()), notes.end());
    return notes;
}

}  // namespace flamewire::server
