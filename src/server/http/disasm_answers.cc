#include "server/http/disasm_answers.h"

#include <fmt/format.h>

#include <limits>

#include "base/hex.h"
#include "profile/query/query.h"
#include "server/http/session_view.h"
#include "views/disassembly.h"

namespace flamewire::server {
namespace {

Result<std::optional<std::uint64_t>> address_of(const Request& request, std::string_view name) {
    const std::string_view text = request.parameter(name);
    if (text.empty()) return std::optional<std::uint64_t>{};
    return std::optional<std::uint64_t>{TRY(parse_integer(name, text))};
}

Result<views::CodeQuery> parse_query(const Request& request) {
    views::CodeQuery query;
    query.function = request.parameter("function");
    query.module = request.parameter("module");
    query.file = request.parameter("file");
    query.address = TRY(address_of(request, "address"));
    query.at = TRY(address_of(request, "at"));
    query.from = TRY(address_of(request, "from"));
    if (const auto line = TRY(address_of(request, "line"))) {
        if (*line > std::numeric_limits<std::uint32_t>::max()) return fail(ErrorCode::invalid, "line is out of range");
        query.line = static_cast<std::uint32_t>(*line);
    }
    const bool by_address = query.address && !query.module.empty();
    if (query.function.empty() && !by_address && (query.file.empty() || query.line == 0))
        return fail(ErrorCode::invalid, "specify a function: function, or file and line, or module and address");
    return query;
}

void write_copies(JsonWriter& json, const std::vector<views::CodeCopy>& copies, const views::CodePlaces& code) {
    json.list("copies", copies, [&](const views::CodeCopy& copy) {
        const views::CodePlaces::Module& module = code.modules.at(copy.module);
        json.object();
        json.member("name", copy.range.name);
        json.member("module", module.name);
        json.member("build_id", to_hex(module.identity.build_id));
        json.member("address", copy.range.start);
        json.member("size", copy.range.size);
        json.member("inlined", copy.inlined);
        json.member("self", copy.self.weight);
        json.member("self_samples", copy.self.samples);
        json.member("total", copy.total.weight);
        json.end_object();
    });
}

void write_instructions(JsonWriter& json, const views::Disassembly& code) {
    using symbol::Instruction;
    json.key("instructions");
    json.object();
    const auto column = [&](std::string_view name, auto value) {
        json.list(name, code.instructions, [&](const Instruction& instruction) { json.number(value(instruction)); });
    };
    const auto numbers = [&](std::string_view name, const auto& list) {
        json.list(name, list, [&](auto number) { json.number(number); });
    };
    column("address", [](const Instruction& instruction) { return instruction.address; });
    column("size", [](const Instruction& instruction) { return instruction.size; });
    json.list("text", code.instructions, [&](const Instruction& instruction) { json.text(instruction.text); });
    column("flow", [](const Instruction& instruction) { return static_cast<unsigned>(instruction.flow); });
    column("known", [](const Instruction& instruction) { return instruction.known ? 1u : 0u; });
    numbers("target", code.target);
    column("target_address", [](const Instruction& instruction) { return instruction.target.value_or(0); });
    numbers("target_name", code.target_name);
    column("reference", [](const Instruction& instruction) { return instruction.reference.value_or(0); });
    numbers("place", code.place);
    const auto weights = [&](const std::string& name, const std::vector<profile::Weight>& of) {
        json.list(name, of, [&](const profile::Weight& weight) { json.number(weight.weight); });
        json.list(name + "_samples", of, [&](const profile::Weight& weight) { json.number(weight.samples); });
    };
    weights("self", code.self);
    weights("total", code.total);
    json.end_object();
    json.list("places", code.places, [&](const std::vector<std::uint32_t>& place) {
        json.array();
        for (const std::uint32_t number : place) json.number(number);
        json.end_array();
    });
    json.texts("strings", code.strings);
}

}  // namespace

Answer disasm_answer(const Session& session, const Request& request, symbol::Symbolizer& symbolizer) {
    const auto query = parse_query(request);
    if (!query) return error_answer(query.error());
    const auto places = session.read([&](const profile::Store& store) { return views::find_code(store, *query); });
    std::vector<views::CodeCopy> copies = views::copies_of(places, symbolizer);
    if (copies.empty())
        return error_answer(404, "not_found",
                            query->function.empty()
                                ? std::string("no sampled code is known there: only functions with samples are shown")
                                : fmt::format("no sample of this session is in {:.200}", query->function));
    const auto parameters = parse_view(request);
    if (!parameters) return error_answer(parameters.error());
    views::CodeHeat heat;
    std::uint64_t version = 0;
    profile::Weight total;
    const std::uint64_t start_ns = session.status().start_ns();
    const auto view = session.read([&](const profile::Store& store) -> Result<views::View> {
        views::View resolved = TRY(resolve_view(*parameters, store, start_ns));
        heat = views::heat_of(store, resolved.filter, copies);
        total = profile::total_of(store, resolved.filter);
        version = store.version();
        return resolved;
    });
    if (!view) return error_answer(view.error());
    const views::Disassembly code = views::disassemble(places, std::move(copies), heat, *query, symbolizer);
    JsonWriter json;
    json.object();
    write_head(json, ViewHead{session.id(), *view, version}, total);
    write_copies(json, code.copies, places);
    json.member("chosen", code.chosen);
    json.member("file", code.file);
    json.member("machine", code.machine);
    json.member("problem", code.problem);
    json.member("remedy", code.remedy);
    json.member("note", code.note);
    json.member("next", code.next);
    json.member("first", code.first);
    write_instructions(json, code);
    json.end_object();
    return json_answer(json.take());
}

}  // namespace flamewire::server
