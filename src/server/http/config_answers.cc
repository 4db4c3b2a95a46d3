// GET and PATCH /api/config, POST /api/config/toolchain.
#include <fmt/format.h>
#include <rapidjson/document.h>

#include <algorithm>
#include <filesystem>

#include "server/http/api.h"
#include "server/session/json_writer.h"
#include "wire/control.h"

namespace flamewire::server {
namespace {

constexpr std::size_t max_list = 1000;

Result<std::vector<std::string>> texts(const rapidjson::Value& value, std::string_view name) {
    std::vector<std::string> result;
    if (!value.IsArray() || value.Size() > max_list)
        return fail(ErrorCode::invalid, fmt::format("{} is a list of texts", name));
    for (const auto& element : value.GetArray()) {
        if (!element.IsString()) return fail(ErrorCode::invalid, fmt::format("{} is a list of texts", name));
        result.emplace_back(element.GetString(), element.GetStringLength());
    }
    return result;
}

Result<std::string> text(const rapidjson::Value& value, std::string_view name) {
    if (!value.IsString()) return fail(ErrorCode::invalid, fmt::format("{} is a text", name));
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
    } else if (name == "source_dir") {
        values.source_dir = TRY(text(value, name));
    } else if (name == "path_map") {
        values.path_map = TRY(texts(value, name));
    } else if (name == "sysroot") {
        values.sysroot = TRY(text(value, name));
    } else if (name == "inline") {
        if (!value.IsBool()) return fail(ErrorCode::invalid, "inline is true or false");
        values.inlines = value.GetBool();
    } else {
        return fail(ErrorCode::invalid, fmt::format("unknown member {:.60}", name));
    }
    return true;
}

Result<SettingsValues> changed(SettingsValues values, const std::string& body) {
    const auto document = wire::parse_object(body);
    if (!document) return fail(ErrorCode::invalid, "the body is no JSON object: " + document.error().message);
    for (const auto& member : document->GetObject())
        TRY(change(values, {member.name.GetString(), member.name.GetStringLength()}, member.value));
    TRY(check(values));
    return values;
}

}  // namespace

Answer Api::config(const Request& request) {
    if (request.method != "PATCH") return config_answer(settings_.get(), nullptr);
    auto values = changed(settings_.get(), request.body);
    return values ? apply(std::move(*values)) : error_answer(values.error());
}

Answer Api::toolchain(const Request& request) {
    SettingsValues values = settings_.get();
    const auto document = wire::parse_object(request.body);
    if (!document) return error_answer(400, "validation", "the body is no JSON object: " + document.error().message);
    std::string prefix;
    bool named = false;
    for (const auto& member : document->GetObject()) {
        const std::string_view name(member.name.GetString(), member.name.GetStringLength());
        auto value = text(member.value, name);
        if (!value) return error_answer(value.error());
        if (name == "sysroot") {
            values.sysroot = std::move(*value);
            named = true;
        } else if (name == "toolchain_prefix") {
            prefix = std::move(*value);
        } else {
            return error_answer(400, "validation", fmt::format("unknown member {:.60}", name));
        }
    }
    if (!named && !prefix.empty()) {
        values.sysroot = Settings::sysroot_of_toolchain(prefix);
        if (values.sysroot.empty())
            return error_answer(400, "validation",
                                fmt::format("no sysroot is found beside {:.200}: give it with sysroot", prefix));
    }
    if (auto valid = check(values); !valid) return error_answer(valid.error());
    return apply(std::move(values));
}

Answer Api::apply(SettingsValues values) {
    settings_.set(values);
    sources_.set_config(source_config(values));
    symbolizer_.set_config(symbol_config(values));
    for (const auto& session : catalog_.all_loaded()) {
        session->forget_frames();
        symbols_.schedule(session);
    }
    const auto notes = notes_about(values);
    return config_answer(values, &notes);
}

// Which module of a running session each given binary is for, or why it is for none.
std::vector<std::string> Api::notes_about(const SettingsValues& values) {
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
    std::sort(notes.begin(), notes.end());
    notes.erase(std::unique(notes.begin(), notes.end()), notes.end());
    return notes;
}

Answer Api::config_answer(const SettingsValues& values, const std::vector<std::string>* notes) {
    JsonWriter json;
    json.object();
    json.texts("binaries", values.binaries);
    json.member("source_dir", values.source_dir);
    json.texts("path_map", values.path_map);
    json.member("sysroot", values.sysroot);
    json.member("inline", values.inlines);
    if (notes != nullptr) json.texts("notes", *notes);
    json.end_object();
    return json_answer(json.take());
}

}  // namespace flamewire::server
